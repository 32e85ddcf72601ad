"""The Listen panel as a page: files, what is saved, refusals, languages, phones, other servers."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Playwright, expect

from e2e.browser import launch
from e2e.conftest import OpenHearing
from e2e.microphone import write_clip
from e2e.playground import Playground
from plait.engines.scripted.hearing import recite
from tests.live.server import LiveServer, live_server

RATE = 16_000
SAID = ["one two three", "four five six seven", "eight nine"]
DROP = """
([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "audio/wav" }));
  return transfer;
}
"""

COUNT_TOUCHED = """
() => {
  const list = document.querySelector("[data-testid=transcript]");
  const settled = new WeakSet();
  window.touched = 0;
  new MutationObserver((records) => {
    for (const { target } of records) {
      const row = (target.closest ? target : target.parentElement).closest("li");
      if (row && settled.has(row)) window.touched += 1;
    }
    for (const row of list.children) if (row.dataset.final === "true") settled.add(row);
  }).observe(list, {
    subtree: true,
    childList: true,
    characterData: true,
    attributeFilter: ["data-final", "data-revision", "hidden", "class"],
  });
}
"""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SAID, in some five seconds."""
    path = tmp_path_factory.mktemp("clip") / "three.phrases.wav"
    return write_clip(path, recite(" . ".join(SAID), RATE), RATE)


def transcribe(playground: Playground, clip: Path) -> None:
    playground.test_id("file-input").set_input_files(clip)
    playground.listening.wait_state("completed")


def test_a_file_is_transcribed_whole(listening: Playground, clip: Path) -> None:
    transcribe(listening, clip)

    heard = listening.listening
    assert heard.read() == SAID
    expect(heard.receipt).to_have_text(re.compile(r"^heard 3\.\d+ s · all of it is final$"))
    expect(listening.test_id("audio-length")).to_have_text(re.compile(r"^0:03\.\d / 0:03\.\d$"))
    for figure in ("first-text", "lag"):
        expect(listening.test_id(figure)).to_contain_text(re.compile(r"\d m?s"))
    expect(listening.test_id("detected-language")).to_have_text("English")
    expect(listening.test_id("revision-count")).to_contain_text(re.compile(r"\d\.\d rev"))
    heard.again.click()
    heard.wait_state("completed")
    assert heard.read() == SAID


def test_a_file_dropped_on_the_panel_is_transcribed(listening: Playground, clip: Path) -> None:
    data = base64.b64encode(clip.read_bytes()).decode()
    transfer = listening.page.evaluate_handle(DROP, [clip.name, data])
    zone = listening.test_id("drop-zone")
    zone.dispatch_event("dragover", {"dataTransfer": transfer})
    expect(listening.page.get_by_text("Drop it")).to_be_visible()

    zone.dispatch_event("drop", {"dataTransfer": transfer})

    expect(listening.page.get_by_text("Drop it")).to_be_hidden()
    listening.listening.wait_state("completed")
    assert listening.listening.read() == SAID


def save(playground: Playground, kind: str) -> tuple[str, str]:
    """Name and text of what is saved."""
    with playground.page.expect_download() as download:
        playground.test_id(f"save-{kind}").click()
    return download.value.suggested_filename, download.value.path().read_bytes().decode()


def seconds(time: str, point: str) -> float:
    match = re.fullmatch(rf"(\d\d):([0-5]\d):([0-5]\d){re.escape(point)}(\d{{3}})", time)
    assert match, time
    hours, minutes, whole, thousandths = map(int, match.groups())
    return 3600 * hours + 60 * minutes + whole + thousandths / 1000


def parse_cues(blocks: list[list[str]], point: str) -> list[str]:
    """Strictly; the texts. Cues are in order, do not overlap, and lie within the audio."""
    times, texts = [], []
    for line, *text in blocks:
        start, arrow, end = line.split(" ")
        assert arrow == "-->"
        times += [seconds(start, point), seconds(end, point)]
        assert text
        texts.append(" ".join(text))
    assert times == sorted(times)
    assert all(start < end for start, end in zip(times[::2], times[1::2], strict=True))
    assert times[-1] < 4
    return texts


def test_what_is_saved_is_text_subrip_and_webvtt(listening: Playground, clip: Path) -> None:
    transcribe(listening, clip)

    assert save(listening, "txt") == ("three.phrases.txt", "".join(f"{t}\n" for t in SAID))

    name, srt = save(listening, "srt")
    assert name == "three.phrases.srt"
    assert "\n" not in srt.replace("\r\n", "")
    blocks = [block.split("\r\n") for block in srt.removesuffix("\r\n\r\n").split("\r\n\r\n")]
    assert [block.pop(0) for block in blocks] == ["1", "2", "3"]
    assert parse_cues(blocks, ",") == SAID

    name, vtt = save(listening, "vtt")
    assert name == "three.phrases.vtt"
    header, *cues = vtt.removesuffix("\n\n").split("\n\n")
    assert header == "WEBVTT"
    assert parse_cues([cue.split("\n") for cue in cues], ".") == SAID


def test_a_long_transcript_grows_at_its_end_alone_and_is_followed_unless_read(
    listening: Playground, tmp_path: Path
) -> None:
    phrases = ["one two three four five six"] * 40
    clip = write_clip(tmp_path / "long.wav", recite(" . ".join(phrases), 8_000), 8_000)
    listening.page.evaluate(COUNT_TOUCHED)

    transcribe(listening, clip)

    heard = listening.listening
    expect(heard.finals).to_have_count(40)
    assert listening.page.evaluate("window.touched") == 0
    expect(heard.segments.last).to_be_in_viewport()
    latest = heard.root.get_by_role("button", name="Latest")
    expect(latest).to_be_hidden()
    heard.text.evaluate("list => list.scrollTo(0, 0)")
    latest.click()
    expect(latest).to_be_hidden()
    expect(heard.segments.last).to_be_in_viewport()


def test_a_file_that_is_no_audio_says_so_and_another_can_follow(
    listening: Playground, clip: Path
) -> None:
    nothing = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"not a sound")
    listening.test_id("file-input").set_input_files(nothing)

    heard = listening.listening.wait_state("errored")
    expect(heard.receipt).to_have_attribute("data-tone", "bad")
    expect(heard.receipt).not_to_be_empty()
    expect(listening.test_id("save-txt")).to_be_disabled()

    transcribe(listening, clip)
    assert heard.read() == SAID


def test_it_listens_to_its_own_voice(listening: Playground, listening_server: LiveServer) -> None:
    listening.test_id("own-voice").click()

    heard = listening.listening.wait_state("completed")
    expect(heard.segments.first).to_be_visible()
    expect(heard.interims).to_have_count(0)
    listening_server.wait_idle()


def test_a_language_reaches_the_server_and_is_remembered(listening: Playground, clip: Path) -> None:
    listening.test_id("language").select_option("German")
    transcribe(listening, clip)
    listening.page.get_by_label("Filter frames by text").fill('"type":"open"')
    listening.test_id("wire-row").first.click()
    frame = listening.page.get_by_role("region", name="Selected frame")
    expect(frame).to_contain_text('"language": "de"')

    listening.reload().show_panel("Listen")

    expect(listening.test_id("language")).to_have_value("de")


def test_what_was_listened_to_is_counted(listening: Playground, clip: Path) -> None:
    transcribe(listening, clip)

    listening.show_panel("Monitor")

    expect(listening.page.locator(".totals")).to_contain_text(re.compile(r"Listened to[\d.]+ s"))


def test_a_phone_has_room_for_all_of_it(hearing: OpenHearing) -> None:
    playground = hearing()
    playground.page.set_viewport_size({"width": 360, "height": 740})
    assert not playground.overflows_sideways()
    heard = playground.record().wait_final("three")
    parts = [heard.stop, *map(playground.test_id, ("record", "device", "language", "save-vtt"))]
    for part in parts:
        expect(part).to_be_in_viewport(ratio=1)
    assert not playground.overflows_sideways()
    heard.stop.click()
    expect(heard.wait_state("cancelled").receipt).to_be_in_viewport(ratio=1)
    assert not playground.overflows_sideways()

    heights = playground.page.locator("button:visible, select:visible").evaluate_all(
        "all => all.map((one) => [one.offsetHeight, one.outerHTML.slice(0, 80)])"
    )

    assert [entry for entry in heights if entry[0] < 40] == []


@pytest.fixture(scope="module")
def closed_browser(playwright: Playwright) -> Iterator[Browser]:
    """Its microphone is refused to every page; plait.test is this machine, but not a safe one."""
    launched = launch(
        playwright,
        "--use-fake-device-for-media-stream",
        "--deny-permission-prompts",
        "--host-resolver-rules=MAP plait.test 127.0.0.1",
    )
    yield launched
    launched.close()


def test_a_refused_microphone_says_what_to_do(
    closed_browser: Browser, listening_server: LiveServer
) -> None:
    playground = Playground(closed_browser.new_page(), listening_server.url).open()
    playground.show_panel("Listen")

    playground.test_id("record").click()

    expect(playground.test_id("microphone-trouble")).to_contain_text("Allow it in the browser")
    expect(playground.test_id("record")).to_be_enabled()
    expect(playground.listening.root).to_be_hidden()
    assert playground.errors == []
    playground.page.close()


def test_no_microphone_at_all_says_so(listening: Playground) -> None:
    listening.test_id("record").click()

    expect(listening.test_id("microphone-trouble")).to_contain_text("No microphone was found")


def test_without_a_secure_context_files_still_work(closed_browser: Browser, clip: Path) -> None:
    with live_server(transcribe="scripted", allowed_hosts="plait.test") as far:
        origin = f"http://plait.test:{far.port}"
        playground = Playground(closed_browser.new_page(), origin).open()
        playground.show_panel("Listen")
        expect(playground.test_id("microphone-trouble")).to_contain_text("only over https")
        expect(playground.test_id("record")).to_be_disabled()

        transcribe(playground, clip)

        assert playground.listening.read() == SAID
        assert playground.errors == []
        playground.page.close()


def test_a_server_without_transcription_says_what_to_do(
    new_tab: Callable[[str], Playground], server: LiveServer
) -> None:
    playground = new_tab(server.url).open()

    playground.show_panel("Listen")

    expect(playground.test_id("no-listening")).to_contain_text("plait models pull whisper-tiny.en")
    expect(playground.test_id("record")).to_be_hidden()
