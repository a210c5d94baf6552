"""Extensions, Cython directives, compiler flags and the description; everything else is in pyproject.toml.

Build variants, each with its own folder under build/:

release   for users.
checked   STAIRCASE_FAST_DEBUG=1: bounds checks, assertions, undefined behaviour traps.
coverage  STAIRCASE_FAST_COVERAGE=1: gcov counts for the lines of .pyx and .pxd files.
address   STAIRCASE_FAST_SANITIZE=address: address and undefined-behaviour sanitizers.
thread    STAIRCASE_FAST_SANITIZE=thread: thread sanitizer.
"""

import os
import re
import tomllib
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group


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
SHARED = "staircase_fast._shared"  # Cython's memoryview code, compiled once for all kernels

DIRECTIVES = {
    "language_level": 3,
    "binding": True,  # signatures for inspect.signature, help() and stubtest
    "embedsignature": True,
    "embedsignature.format": "python",
    "boundscheck": CHECKED,
    "initializedcheck": CHECKED,
    "nonecheck": CHECKED,
    "wraparound": False,  # in the checked build a negative index is an error
    "cdivision": True,  # in every variant: kernels rely on C's division
    "freethreading_compatible": True,  # docs/development.md, "Free threading", gives the reasons
    # overflowcheck stays off: it forbids unsigned wrap-around, which kernels may use. The checked build traps signed
    # overflow instead.
}

# Results must be the same on every machine: no -ffast-math, no -march=native, no fused multiply-add, which only some
# processors have.
UNIX_MATH = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
UNIX_COMPILE = {
    # Sums may overflow if inputs change during a call: they must wrap, not be undefined behaviour.
    "release": ["-O3", "-g0", "-fwrapv", *UNIX_MATH],
    # A trap needs no runtime library. Python's own flags may contain -fwrapv, which would hide signed overflow.
    "checked": [
        "-O1",
        "-g",
        *UNIX_MATH,
        "-fno-wrapv",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
    ],
    # An inline function that is never called must count as not covered: keep it for gcov, then let the linker drop it
    # (Python's headers have some that cannot be linked).
    "coverage": [
        "-O0",
        *UNIX_MATH,
        "--coverage",
        "-fprofile-update=atomic",  # some tests fit in threads
        "-fkeep-inline-functions",
        "-ffunction-sections",
    ],
    # These use the directives of the release, not of the checked build, so that a wrong index reaches the sanitizer.
    # They need the sanitizer's library preloaded (tests/safety/sanitize.py).
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

# `assert` in a kernel costs nothing in a release and is checked in the other variants.
MACROS = [("CYTHON_WITHOUT_ASSERTIONS", "1")] if VARIANT == "release" else []


def pin_lines(path):
    """Repeat Cython's #line marker before every C line that belongs to it.

    Without this, gcov attributes the further C lines of a statement to the next lines of the .pyx file.
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
    """Translates Cython when it builds (an sdist contains no C) and chooses the compiler flags."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        # cythonize compares the dates of .pyx and .pxd files only, but the directives are in this file.
        changed = os.path.getmtime("setup.py")
        made = [f"{C_DIR}/{os.path.splitext(extension.sources[0])[0]}.c" for extension in self.extensions]
        stale = any(os.path.exists(c) and os.path.getmtime(c) < changed for c in made)
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
        stale = [extension.name for extension in self.extensions if self.is_stale(extension)]
        self.titles = {name: f"[{place}/{len(stale)}] compiling {name}" for place, name in enumerate(stale, 1)}
        super().build_extensions()

    def build_extension(self, extension):
        if extension.name in self.titles:  # --quiet hides the compiler's commands, which take minutes
            print(self.titles[extension.name], flush=True)
        super().build_extension(extension)

    def is_stale(self, extension):
        made = self.get_ext_fullpath(extension.name)
        return self.force or newer_group([*extension.sources, *extension.depends], made, "newer")


def extensions():
    sources = {SHARED: f"{SHARED.replace('.', '/')}.c"}  # generated by Cython
    for path in sorted(glob("staircase_fast/**/*.pyx", recursive=True)):
        sources[path.removesuffix(".pyx").replace(os.sep, ".").replace("/", ".")] = path
    # cythonize knows which .pxd files a module depends on, and translates it again if one changes
    return [Extension(name, [path], depends=["setup.py"], define_macros=MACROS) for name, path in sources.items()]


def description():
    """The README with absolute links: a package index shows it without the files that it links to."""
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    with open("README.md", encoding="utf-8") as file:
        text = file.read()
    source, version = project["urls"]["Source"], f"v{project['version']}"
    text = re.sub(r"(!\[[^]]*\]\()(?!https:)", rf"\1{source}/raw/{version}/", text)
    return re.sub(r"(\]\()(?!https:|#)", rf"\1{source}/blob/{version}/", text)


if __name__ == "__main__":  # cythonize's worker processes may import this file
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExt},
        options={"build": {"build_base": BUILD_BASE}},
    )
