"""Fetches models from the Hugging Face hub: one GGUF or ggml file, or files of a repository.

Downloads go through huggingface_hub and its own cache, so an interrupted big download resumes, and
the user's token, endpoint and offline settings hold. Does NOT know: the store, conversion.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plait.models.errors import SourceUnavailable
from plait.models.sources import HubModel

Progress = Callable[[str, float], None]

CHAT_STARTER = "chat_model = 'smollm2-135m-instruct'"
# Everything an mlx-lm model directory may need, and no code.
MLX_FILES = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model")


def fetch_file(model: HubModel, progress: Progress) -> Path:
    """The one file, in the hub's cache. Raises SourceUnavailable."""
    from huggingface_hub import hf_hub_download

    assert model.file is not None
    instead = "transcribe_model = 'whisper-tiny.en'" if model.listens else CHAT_STARTER
    with _hub_errors(model, instead):
        return Path(
            hf_hub_download(model.repository, model.file, tqdm_class=_progress_bar(progress))
        )


def fetch_repository(
    model: HubModel,
    progress: Progress,
    patterns: Sequence[str] = MLX_FILES,
    instead: str = CHAT_STARTER,
) -> Path:
    """The snapshot directory of the repository's files of those names, in the hub's cache.
    Raises SourceUnavailable, which names the setting to use `instead`."""
    from huggingface_hub import snapshot_download

    with _hub_errors(model, instead):
        return Path(
            snapshot_download(
                model.repository,
                allow_patterns=list(patterns),
                tqdm_class=_progress_bar(progress),
            )
        )


@contextmanager
def _hub_errors(model: HubModel, instead: str) -> Iterator[None]:
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise _unavailable(
            model, "it is gated", "Accept its licence on huggingface.co, then set HF_TOKEN."
        ) from error
    except (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError) as error:
        raise _unavailable(
            model,
            "the hub knows no such repository or file",
            "Check the spelling; a private repository needs HF_TOKEN.",
        ) from error
    except (errors.HFValidationError, OSError) as error:
        # OSError covers the offline switch, an unreachable hub, a missing cache entry and HTTP
        # errors alike; a full disk keeps its own meaning.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _unavailable(
            model,
            f"the hub cannot be reached ({type(error).__name__})",
            "Check the network (HF_HUB_OFFLINE and HF_ENDPOINT too), or use the starter model:"
            f" {instead}.",
        ) from error


def _unavailable(model: HubModel, why: str, next_step: str) -> SourceUnavailable:
    return SourceUnavailable(f"{model.description} could not be fetched: {why}.", next_step)


def _progress_bar(progress: Progress) -> Any:
    """A tqdm class that reports to `progress` and draws nothing."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    class ReportingBar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs |= {"file": io.StringIO(), "disable": False}
            kwargs.pop("name", None)  # huggingface_hub's own extension of tqdm
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> None:
            super().update(n)
            if self.total:
                progress("download", min(100.0, 100 * self.n / self.total))

    return ReportingBar
