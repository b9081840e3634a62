"""The compiled part of regard; pyproject.toml says everything else."""

from pathlib import Path

from setuptools import Extension, setup

HERE = Path("src/regard/native")

# Where there is no C compiler, regard is installed without the compiled part and works without it.
engine = Extension(
    "regard.native._engine",
    sources=sorted(map(str, HERE.glob("*.c"))),
    depends=sorted(map(str, HERE.glob("*.h"))),
    # Without partial redundancy elimination the sums of a matrix product's tile stay in registers.
    extra_compile_args=["-O3", "-fno-math-errno", "-fno-tree-pre"],
    libraries=["m"],
    optional=True,
)

setup(ext_modules=[engine])
