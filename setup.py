"""Puts configs/ into the built package as percolab/configs; pyproject.toml declares all else."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CONFIGS = Path(__file__).parent / "configs"


class BuildWithConfigs(build_py):
    """Builds the package with the studies of configs/; an editable install reads them there."""

    def run(self):
        """Build, and copy the study files."""
        super().run()
        if self.editable_mode:
            return
        for path in sorted(CONFIGS.rglob("*.toml")):
            target = Path(self.build_lib, "percolab", "configs", path.relative_to(CONFIGS))
            self.mkpath(str(target.parent))
            self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": BuildWithConfigs})
