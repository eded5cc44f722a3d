"""Release chains: one bare Git repository, one ref a scenario, large files as Git LFS objects, everything signed."""

from daemon.store.releases.chain import Standing
from daemon.store.releases.publisher import Releases

__all__ = ["Releases", "Standing"]
