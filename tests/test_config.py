"""Config: four sources, one order, and errors that name the key and the nearest one."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from plait.config import SPECS, Config, ConfigError, is_loopback
from plait.config_page import markdown
from plait.config_sources import env_name, load_config

DOCS = Path(__file__).parents[1] / "docs" / "configuration.md"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "plait.toml"


def test_defaults_need_no_file_and_no_environment() -> None:
    config = load_config(environ={})

    assert (config.host, config.port, config.slots) == ("127.0.0.1", 8760, 4)
    assert config.chat_model == "smollm2-135m-instruct"


def test_the_command_line_wins_over_environment_over_file(toml: Path) -> None:
    toml.write_text("port = 1\nslots = 2\nmax_tokens = 3\n")

    config = load_config(toml, {"PLAIT_SLOTS": "20", "PLAIT_PORT": "10"}, {"port": 100})

    assert (config.max_tokens, config.slots, config.port) == (3, 20, 100)


def test_an_argument_that_was_not_given_changes_nothing(toml: Path) -> None:
    toml.write_text("port = 81\n")

    assert load_config(toml, {}, {"port": None, "host": None}).port == 81


@pytest.mark.parametrize(
    ("line", "key", "nearest"),
    [
        ("max_token = 5", "max_token", "max_tokens"),
        ("Port = 5", "Port", "'port'"),
        ("temperature = 5", "temperature", "docs/configuration.md"),
        ("[gateway]\nslots = 2", "gateway", "docs/configuration.md"),
    ],
)
def test_an_unknown_key_in_the_file_names_the_nearest(
    toml: Path, line: str, key: str, nearest: str
) -> None:
    toml.write_text(line)

    with pytest.raises(ConfigError, match=nearest) as caught:
        load_config(toml, {})

    assert caught.value.key == key


def test_an_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="PLAIT_MAX_STREAMS"):
        load_config(environ={"PLAIT_MAX_STREAM": "5"})


def test_a_variable_unlike_any_other_gets_no_guess() -> None:
    with pytest.raises(ConfigError, match="docs/configuration") as caught:
        load_config(environ={"PLAIT_FOO": "5"})

    assert "Did you mean" not in str(caught.value)


def test_an_error_in_a_value_says_who_set_it(toml: Path) -> None:
    toml.write_text("slots = 0\n")

    with pytest.raises(ConfigError, match=r"slots must be at least 1.*plait\.toml sets it"):
        load_config(toml, {})
    with pytest.raises(ConfigError, match="PLAIT_SLOTS sets it"):
        load_config(toml, {"PLAIT_SLOTS": "0"})
    with pytest.raises(ConfigError, match="--port sets it"):
        load_config(toml, {"PLAIT_SLOTS": "1"}, {"port": -1})


def test_a_lone_string_where_a_list_belongs_is_shown_as_a_list(toml: Path) -> None:
    toml.write_text('allowed_hosts = "a.example"\n')
    with pytest.raises(ConfigError, match=r'Write allowed_hosts = \["a.example"\]'):
        load_config(toml, {})

    toml.write_text('tokens = "secret"\n')
    with pytest.raises(ConfigError, match=r'Write tokens = \["…"\]'):
        load_config(toml, {})


ORIGINS = (
    "https://app.example",
    "http://10.0.0.1:8080",
    "http://[::1]:3000",
    "chrome-extension://abcdef",
)


def test_origins_as_browsers_send_them_are_accepted() -> None:
    assert Config(allowed_origins=ORIGINS).allowed_origins == ORIGINS


@pytest.mark.parametrize(
    "origin",
    ["*", "app.example", "https://app.example/", "https://App.example", "https://", "null"],
)
def test_an_origin_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(ConfigError, match="scheme://host"):
        Config(allowed_origins=(origin,))


@pytest.mark.parametrize("host", ["a..b", "http://a.example", "a.example:80", "a b", "-a", "[::1"])
def test_what_cannot_be_a_hosts_name_is_refused_as_such(host: str) -> None:
    with pytest.raises(ConfigError, match="address or a host's name"):
        Config(host=host, tokens=("t",))


def test_kubernetes_service_variables_are_no_settings() -> None:
    environ = {"PLAIT_SERVICE_HOST": "10.0.0.1", "PLAIT_PORT_8760_TCP": "x", "PATH": "/bin"}

    assert load_config(environ=environ) == Config()


@pytest.mark.parametrize(
    "line",
    [
        'port = "8760"',
        "port = true",
        "port = 87.5",
        "host = 1",
        'allowed_hosts = "a"',
        "allowed_hosts = [1]",
        'allowed_hosts = [""]',
        "drain_seconds = false",
    ],
)
def test_a_wrong_type_in_the_file_names_the_key(toml: Path, line: str) -> None:
    toml.write_text(line)

    with pytest.raises(ConfigError, match="must be") as caught:
        load_config(toml, {})

    assert caught.value.key == line.split(" ", maxsplit=1)[0]


@pytest.mark.parametrize(
    "line",
    [
        "port = -1",
        "port = 65536",
        "slots = 0",
        "queue_timeout_seconds = nan",
        "queue_timeout_seconds = inf",
        "max_text_bytes = 99999999999",
        'chat_engine = "mxl"',
        'log_level = "loud"',
        'chat_model = ""',
    ],
)
def test_a_value_out_of_bounds_names_the_key(toml: Path, line: str) -> None:
    toml.write_text(line)

    with pytest.raises(ConfigError) as caught:
        load_config(toml, {})

    assert caught.value.key == line.split(" ", maxsplit=1)[0]


@pytest.mark.parametrize("text", ["", "8760x", "nan", "1e3", "tcp://10.0.0.1:8760"])
def test_a_wrong_type_in_the_environment_names_the_variable(text: str) -> None:
    with pytest.raises(ConfigError, match="PLAIT_PORT must be a whole number"):
        load_config(environ={"PLAIT_PORT": text})


def test_lists_in_the_environment_are_separated_by_commas() -> None:
    config = load_config(environ={"PLAIT_ALLOWED_HOSTS": "a.example, b.example,"})

    assert config.allowed_hosts == ("a.example", "b.example")


def test_the_token_variable_adds_to_the_file(toml: Path) -> None:
    toml.write_text('tokens = ["one"]\n')

    assert load_config(toml, {"PLAIT_TOKEN": "two"}).tokens == ("one", "two")


def test_tokens_are_not_in_the_repr_nor_in_errors(toml: Path) -> None:
    toml.write_text('tokens = "CANARY"\n')

    with pytest.raises(ConfigError) as caught:
        load_config(toml, {})

    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in repr(Config(tokens=("CANARY",)))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "plait.example", ""])
def test_binding_beyond_loopback_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="host"):
        Config(host=host)


def test_binding_beyond_loopback_with_a_token_is_allowed() -> None:
    assert load_config(environ={"PLAIT_HOST": "0.0.0.0", "PLAIT_TOKEN": "t"}).host == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_addresses_need_no_token(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("content", [b"port =", b"\xff\xfe", b"port = 1\nport = 2"])
def test_an_unreadable_file_is_a_config_error(toml: Path, content: bytes) -> None:
    toml.write_bytes(content)

    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(toml, {})


def test_a_named_file_must_exist(toml: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        load_config(toml, {})


def test_the_file_can_be_named_by_the_environment(toml: Path) -> None:
    toml.write_text("slots = 7\n")

    assert load_config(environ={"PLAIT_CONFIG": str(toml)}).slots == 7


def test_a_config_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().port = 1  # type: ignore[misc]


def test_the_documentation_is_in_step_with_the_code() -> None:
    assert DOCS.read_text(encoding="utf-8") == markdown()


def test_every_setting_is_documented_with_its_variable() -> None:
    for name in SPECS:
        assert f"`{name}`" in markdown()
        assert f"`{env_name(name)}`" in markdown()


def test_llamacpp_takes_fewer_slots_than_other_engines() -> None:
    assert Config(chat_engine="mlx", slots=1024).slots == 1024
    with pytest.raises(ConfigError, match=r"slots must be at most 256 on llama\.cpp, not 257"):
        Config(chat_engine="llamacpp", slots=257)
