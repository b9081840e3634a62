"""The compiled part of regard; pyproject.toml says everything else."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

HERE = Path("src/regard/native")
OPENMP = "-fopenmp"

# Where there is no C compiler, regard is installed without the compiled part and works without it.
engine = Extension(
    "regard.native._engine",
    sources=sorted(map(str, HERE.glob("*.c"))),
    depends=sorted(map(str, HERE.glob("*.h"))),
    # Without partial redundancy elimination the sums of a matrix product's tile stay in registers.
    extra_compile_args=["-O3", "-fno-math-errno", "-fno-tree-pre", OPENMP],
    extra_link_args=[OPENMP],
    libraries=["m"],
    optional=True,
)


class BuildEngine(build_ext):
    """Build with threads if the compiler has them, otherwise without."""

    def build_extension(self, ext: Extension) -> None:
        """Build one extension."""
        try:
            super().build_extension(ext)
        except (CompileError, LinkError):
            ext.extra_compile_args.remove(OPENMP)
            ext.extra_link_args.remove(OPENMP)
            super().build_extension(ext)


setup(ext_modules=[engine], cmdclass={"build_ext": BuildEngine})
