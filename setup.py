"""Extensions, directives and flags; everything else is in pyproject.toml.

Variants, each with its own directory under build/:

release   what users get.
checked   STAIRCASE_FAST_DEBUG=1: bounds checks, assertions, undefined behaviour traps.
coverage  STAIRCASE_FAST_COVERAGE=1: gcov counts for the lines of .pyx and .pxd files.
address   STAIRCASE_FAST_SANITIZE=address: address and undefined-behaviour sanitizers.
thread    STAIRCASE_FAST_SANITIZE=thread: thread sanitizer.
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


def is_set(name):
    return os.environ.get(name, "0") not in ("", "0")


if is_set("STAIRCASE_FAST_DEBUG"):
    VARIANT = "checked"
elif is_set("STAIRCASE_FAST_COVERAGE"):
    VARIANT = "coverage"
else:
    VARIANT = os.environ.get("STAIRCASE_FAST_SANITIZE") or "release"

CHECKED = VARIANT == "checked"
BUILD_BASE = f"build/{VARIANT}"
C_DIR = f"{BUILD_BASE}/cython"
SHARED = "staircase_fast._shared"  # what Cython's memoryviews need, compiled once for all kernels

DIRECTIVES = {
    "language_level": 3,
    "binding": True,  # real signatures: inspect.signature, help() and stubtest read them
    "embedsignature": True,
    "embedsignature.format": "python",
    "boundscheck": CHECKED,
    "initializedcheck": CHECKED,
    "nonecheck": CHECKED,
    "wraparound": False,  # in the checked build a negative index is an error
    "cdivision": True,  # in every variant: kernels mean C's division
    "freethreading_compatible": True,  # CONTRIBUTING.md, "Free threading", says why
    # overflowcheck stays off: it forbids unsigned wrap-around, which kernels may use. The
    # checked build traps signed overflow instead.
}

# The values must be the same on every machine: no -ffast-math, no -march=native, no fused
# multiply-add that only some processors have.
UNIX_MATH = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX_COMPILE = {
    # Sums may overflow if inputs change during a call: they must wrap, not be undefined behaviour.
    "release": ["-O3", "-g0", "-fwrapv", *UNIX_MATH],
    # A trap needs no runtime library. Python's own flags may hold -fwrapv, which would hide
    # signed overflow.
    "checked": [
        "-O1",
        "-g",
        *UNIX_MATH,
        "-fno-wrapv",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
    ],
    # An inline function that nobody calls must count as not covered: keep it for gcov, then let
    # the linker drop it (Python's headers have some that cannot be linked).
    "coverage": [
        "-O0",
        *UNIX_MATH,
        "--coverage",
        "-fprofile-update=atomic",  # some tests fit in threads
        "-fkeep-inline-functions",
        "-ffunction-sections",
    ],
    # Unlike the checked build, these have the release's directives: an index that a kernel gets wrong must reach the
    # sanitizer. They need the sanitizer's library preloaded (tests/safety/sanitize.py).
    "address": [
        "-O1",
        "-g",
        *UNIX_MATH,
        "-fno-omit-frame-pointer",
        "-fno-wrapv",
        "-fsanitize=address,undefined",
    ],
    "thread": ["-O1", "-g", *UNIX_MATH, "-fno-omit-frame-pointer", "-fsanitize=thread"],
}
UNIX_LINK = {
    "release": ["-lm"],
    "checked": ["-lm"],
    "coverage": ["-lm", "--coverage", "-Wl,--gc-sections"],
    "address": ["-lm", "-fsanitize=address,undefined"],
    "thread": ["-lm", "-fsanitize=thread"],
}
MSVC_COMPILE = {
    "release": ["/O2", "/fp:precise"],
    "checked": ["/Od", "/Zi", "/fp:precise"],
    "coverage": ["/Od", "/fp:precise"],
}

# `assert` in a kernel costs nothing in a release and is live in the other variants.
MACROS = [("CYTHON_WITHOUT_ASSERTIONS", "1")] if VARIANT == "release" else []


def pin_lines(path):
    """Repeat Cython's #line before every line it stands for, else C counts up from it.

    Without this, gcov books C that fills several lines on whatever follows in the .pyx file.
    """
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    pinned, marker, previous = [], "", ""
    for line in lines:
        if line.startswith("#line "):
            marker = line
        elif marker and not previous.startswith("#line ") and not previous.endswith("\\"):
            pinned.append(marker)
        pinned.append(line)
        previous = line
    if pinned != lines:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(pinned))


class BuildExt(build_ext):
    """Translates when it builds (an sdist needs no C) and picks the compiler's flags."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        # cythonize looks at the dates of .pyx and .pxd files; directives live in this file.
        changed = os.path.getmtime("setup.py")
        stale = any(os.path.getmtime(c) < changed for c in glob(f"{C_DIR}/**/*.c", recursive=True))
        translated = cythonize(
            self.extensions,
            build_dir=C_DIR,
            compiler_directives=DIRECTIVES,
            emit_linenums=VARIANT == "coverage",
            force=self.force or stale,
            nthreads=self.parallel,
            shared_utility_qualified_name=SHARED,
        )
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
            if VARIANT == "coverage":
                pin_lines(extension.sources[0])
        super().run()

    def build_extensions(self):
        msvc = self.compiler.compiler_type == "msvc"
        for extension in self.extensions:
            extension.extra_compile_args = MSVC_COMPILE[VARIANT] if msvc else UNIX_COMPILE[VARIANT]
            extension.extra_link_args = [] if msvc else UNIX_LINK[VARIANT]
        super().build_extensions()


def extensions():
    sources = {SHARED: f"{SHARED.replace('.', '/')}.c"}  # Cython writes it
    for path in sorted(glob("staircase_fast/**/*.pyx", recursive=True)):
        sources[path.removesuffix(".pyx").replace(os.sep, ".").replace("/", ".")] = path
    # cythonize knows which .pxd files a module depends on: a change of one makes a new .c file
    return [Extension(name, [path], depends=["setup.py"], define_macros=MACROS) for name, path in sources.items()]


if __name__ == "__main__":  # cythonize's worker processes may import this file
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExt},
        options={"build": {"build_base": BUILD_BASE}},
    )
