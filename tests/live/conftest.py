"""Scripted servers, shared by all tests that leave them as they found them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.server import LiveServer, live_server


@pytest.fixture(scope="package")
def shared_server() -> Iterator[LiveServer]:
    with live_server(slots=4, max_streams=64) as running:
        yield running


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """The shared server, idle before and after."""
    shared_server.wait_idle()
    yield shared_server
    shared_server.wait_idle()


@pytest.fixture(scope="package")
def shared_speech_server() -> Iterator[LiveServer]:
    with live_server(speech="scripted", max_streams=64) as running:
        yield running


@pytest.fixture(scope="package")
def shared_listening_server() -> Iterator[LiveServer]:
    with live_server(transcribe="scripted", max_streams=64) as running:
        yield running


@pytest.fixture(scope="package")
def shared_embed_server() -> Iterator[LiveServer]:
    with live_server(embed="scripted", embed_slots=4, max_streams=64) as running:
        yield running


@pytest.fixture
def embed_server(shared_embed_server: LiveServer) -> Iterator[LiveServer]:
    """A server that chats and embeds by script, idle before and after."""
    shared_embed_server.wait_idle()
    yield shared_embed_server
    shared_embed_server.wait_idle()


@pytest.fixture
def listening_server(shared_listening_server: LiveServer) -> Iterator[LiveServer]:
    """A server that chats and transcribes by script, idle before and after."""
    shared_listening_server.wait_idle()
    yield shared_listening_server
    shared_listening_server.wait_idle()


@pytest.fixture
def speech_server(shared_speech_server: LiveServer) -> Iterator[LiveServer]:
    """A server that chats and speaks by script, idle before and after."""
    shared_speech_server.wait_idle()
    yield shared_speech_server
    shared_speech_server.wait_idle()
