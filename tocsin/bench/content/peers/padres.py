"""The matcher of PADRES, from wherever somebody has built it."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Final

from tocsin.bench.content.contestant import Entry
from tocsin.errors import InvalidError

NAME: Final = "PADRES"
_PROGRAM: Final = "Padres"
_COMPILE_SECONDS: Final = 300


def compile_harness(padres: Path, directory: Path) -> Entry:
    """Compiles our program against PADRES, into a directory; what is amiss is an InvalidError.

    Args:
        padres: a jar with all it needs, or a directory with its classes, or with jars, or both.
        directory: where the compiled program goes.
    """
    if not padres.exists():
        raise InvalidError(f"there is no {padres}; --padres takes the jar of PADRES, or a directory with its classes")
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise InvalidError(f"{program} is not installed, which --padres needs; install a JDK, or leave it out")
    classes = _class_path(padres)
    with resources.as_file(resources.files(__package__) / f"{_PROGRAM}.java") as source:
        compiled = subprocess.run(
            # With a source path of its own: nothing of PADRES is compiled, even if its sources lie there as well.
            ["javac", "-cp", classes, "-d", str(directory), "-proc:none", "-sourcepath", str(directory), str(source)],
            check=False,
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
        )
    if compiled.returncode:
        reason = (compiled.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise InvalidError(f"{padres} is no PADRES that can be driven: {reason}")
    return Entry(NAME, ["java", "-XX:+UseSerialGC", "-cp", os.pathsep.join([str(directory), classes]), _PROGRAM])


def _class_path(padres: Path) -> str:
    if padres.is_file():
        return str(padres.resolve())
    return os.pathsep.join([str(padres.resolve()), *(str(jar) for jar in sorted(padres.resolve().glob("*.jar")))])
