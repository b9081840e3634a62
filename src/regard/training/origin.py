"""Where a run's first weights come from, if not from the dice: the model that is being fine-tuned."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from safetensors.torch import load_file
from torch import nn

from regard.errors import FileFormatError
from regard.files import checksum, read_json, write_json
from regard.model_folder import WEIGHTS, LoadedModel, check_weights, find_model, load_weights, named_weights


@dataclass(frozen=True)
class Origin:
    """A model to begin from, known by the checksum of its weights; its path is where they were found."""

    model: str
    weights: str  # SHA-256 of the file
    vocabulary: str  # the fingerprint
    longest_source: int  # that it has seen, in tokens

    @classmethod
    def of(cls, path: Path, loaded: LoadedModel) -> Self:
        """Describe a model that was read from `path`."""
        folder, _ = find_model(path.absolute())
        longest = int(loaded.facts.get("longest_source", 0))
        return cls(str(folder), checksum(folder / WEIGHTS), loaded.vocabulary.fingerprint, longest)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read what a run has noted; None for a run that began from nothing."""
        if not path.exists():
            return None
        try:
            return cls(**read_json(path))
        except TypeError:
            raise FileFormatError(path, "not what regard writes there") from None

    def write(self, path: Path) -> None:
        """Note it in a run's folder."""
        write_json(path, asdict(self))

    def is_same(self, other: "Origin | None") -> bool:
        """Say whether two models are the same, wherever they are."""
        return other is not None and (self.weights, self.vocabulary) == (other.weights, other.vocabulary)

    def describe(self) -> str:
        """Say which model it is."""
        return f"{self.model} (SHA-256 of its weights {self.weights[:16]}…)"

    def load_into(self, model: nn.Module) -> None:
        """Copy the weights into a model; raises `FileFormatError` if they are no longer what they were."""
        path = Path(self.model) / WEIGHTS
        check_weights(path, {name: tuple(weight.shape) for name, weight in named_weights(model).items()})
        if checksum(path) != self.weights:
            raise FileFormatError(path, "its contents have changed since this run began from it")
        load_weights(model, load_file(path))
