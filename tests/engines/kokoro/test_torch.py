"""Loading PyTorch weights: the account with the package's modules is even, or the load fails.

Checkpoints here are whole in names and shapes and hold one number each, so they are small.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from plait.engines.kokoro.torch_backend import TorchKokoro
from plait.errors import ModelLoadFailed
from plait.models.kokoro.torch_state import is_identity_norm, state_shapes

torch = pytest.importorskip("torch")
pytest.importorskip("kokoro")

pytestmark = pytest.mark.timeout(180)


def published(directory: Path, **changes: Any) -> Path:
    """A kokoro-v1_0.pth: nested, "module." before every name, without the identity norms."""
    nested: dict[str, dict[str, Any]] = {}
    for name, shape in {**state_shapes(), **changes}.items():
        part, _, rest = name.partition(".")
        if shape is not None and not is_identity_norm(name):
            nested.setdefault(part, {})[f"module.{rest}"] = torch.ones(1).expand(shape)
    path = directory / "kokoro-v1_0.pth"
    torch.save(nested, path)
    return path


def load_net(weights: Path) -> Any:
    """The module imports torch and kokoro, which are an extra."""
    return importlib.import_module("plait.engines.kokoro.torch_net").load_net(weights)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that nothing is wrong with."""
    return published(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def net(whole: Path) -> Any:
    return load_net(whole.parent)


def test_our_list_of_tensors_is_the_packages(net: Any) -> None:
    """Built by the package and filled strictly; weight norm is folded by then."""
    plain = {name.replace("weight_v", "weight") for name in state_shapes()}
    assert net.state_dict().keys() == {name for name in plain if not name.endswith("weight_g")}
    assert not any(parameter.is_meta for parameter in net.parameters())
    assert not any(buffer.is_meta for buffer in net.buffers())


def test_norms_that_a_published_checkpoint_leaves_out_are_the_identity(net: Any) -> None:
    norm = net.decoder.generator.noise_res[0].adain1[0].norm

    assert (norm.weight == 1).all()
    assert (norm.bias == 0).all()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"bert_encoder.bias": None}, r"lack 1 tensors, the first is bert_encoder\.bias"),
        ({"decoder.extra": (1,)}, r"in addition 1 tensors, the first is decoder\.extra"),
        ({"bert_encoder.bias": (7,)}, r"misshape 1 tensors, the first is bert_encoder\.bias"),
    ],
)
def test_a_checkpoint_of_other_tensors_is_refused(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(ModelLoadFailed, match=what):
        load_net(published(tmp_path, **changes))


@pytest.mark.parametrize("name", ["kokoro-v1_0.pth", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\x80\x02not a checkpoint", b"PK\x03\x04" + bytes(99)])
def test_a_damaged_file_is_a_failed_load(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ModelLoadFailed, match=r"Verify the model or pull it again"):
        load_net(tmp_path)


def test_a_directory_without_weights_is_a_failed_load(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match=r"model\.safetensors is missing"):
        load_net(tmp_path)


@pytest.mark.parametrize("config", ["{", "[]", '{"n_token": 90}'])
def test_weights_of_another_architecture_are_refused(
    tmp_path: Path, whole: Path, config: str
) -> None:
    (tmp_path / whole.name).symlink_to(whole)
    (tmp_path / "config.json").write_text(config)

    with pytest.raises(ModelLoadFailed, match=r"config\.json"):
        load_net(tmp_path)


@pytest.mark.parametrize("device", ["tpu", "mps" if torch.cuda.is_available() else "cuda"])
def test_a_device_that_is_not_here_is_a_failed_load(
    monkeypatch: pytest.MonkeyPatch, whole: Path, net: Any, device: str
) -> None:
    monkeypatch.setattr("plait.engines.kokoro.torch_net.load_net", {whole: net}.get)

    with pytest.raises(ModelLoadFailed, match=device):
        TorchKokoro.load(whole, device)


def layers() -> Any:
    """A convolution and an LSTM as the package has them, small."""
    torch.manual_seed(1)
    layers = torch.nn.ModuleDict(
        {
            "convolution": torch.nn.Conv1d(6, 6, 5, padding=2),
            "lstm": torch.nn.LSTM(6, 4, batch_first=True, bidirectional=True),
        }
    )
    return layers.requires_grad_(False).eval()


def packed(steps: Any) -> Any:
    lengths = torch.tensor([steps.shape[1]])
    return torch.nn.utils.rnn.pack_padded_sequence(steps, lengths, batch_first=True)


@pytest.mark.parametrize("length", [1, 192, 193, 1000])
def test_layers_cut_along_time_give_the_same_numbers(length: int) -> None:
    pieces = importlib.import_module("plait.engines.kokoro.torch_pieces")
    whole, cut = layers(), layers()
    pieces.cut_long_layers(cut, lambda: None)
    steps = torch.randn(1, length, 6)

    for name, given in (("lstm", steps), ("lstm", packed(steps))):
        expected, got = whole[name](given)[0], cut[name](given)[0]
        torch.testing.assert_close(getattr(got, "data", got), getattr(expected, "data", expected))
    over = steps.transpose(1, 2)
    torch.testing.assert_close(cut["convolution"](over), whole["convolution"](over))


def test_a_long_layer_asks_before_every_piece() -> None:
    pieces = importlib.import_module("plait.engines.kokoro.torch_pieces")
    cut, asked = layers(), []
    pieces.cut_long_layers(cut, lambda: asked.append(1))

    cut["convolution"](torch.randn(1, 6, 1000))
    cut["lstm"](torch.randn(1, 1000, 6))

    assert len(asked) == 3 * -(-1000 // pieces.PIECE)
