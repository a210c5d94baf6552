/* The C-level API from C: a function that fits scores and targets and returns the fitted values, without the GIL. */
#include "staircase_fast.h"

static PyObject *fitted(PyObject *self, PyObject *args)
{
    Py_buffer x, y, out;
    sf_staircase *stairs;
    Py_ssize_t n, bad_row;
    int status;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*w*", &x, &y, &out)) return NULL;
    if (y.len != x.len || out.len != x.len) {
        PyBuffer_Release(&x);
        PyBuffer_Release(&y);
        PyBuffer_Release(&out);
        PyErr_SetString(PyExc_ValueError, "x, y and out must have one length");
        return NULL;
    }
    n = x.len / (Py_ssize_t)sizeof(double);
    Py_BEGIN_ALLOW_THREADS
    status = staircase_fast.fit_squared((const double *)x.buf, (const double *)y.buf, NULL, n, 0, &stairs, &bad_row);
    if (status == SF_OK) {
        status = staircase_fast.evaluate(stairs, (const double *)x.buf, n, 0, (double *)out.buf, &bad_row);
        staircase_fast.staircase_free(stairs);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    PyBuffer_Release(&out);
    if (status != SF_OK)
        return PyErr_Format(PyExc_ValueError, "%s (row %zd)", staircase_fast.status_message(status), bad_row);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"fitted", fitted, METH_VARARGS, "fitted(x, y, out): arrays of doubles"},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "in_c", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_in_c(void)
{
    PyObject *made;
    if (staircase_fast_import() < 0) return NULL;
    made = PyModule_Create(&module);
#ifdef Py_GIL_DISABLED
    if (made != NULL) PyUnstable_Module_SetGIL(made, Py_MOD_GIL_NOT_USED);
#endif
    return made;
}
