"""The Python client: one connection, many streams, each of them cancellable.

    async with connect("ws://127.0.0.1:8760/v1/ws") as client:
        async with client.chat(messages=[{"role": "user", "content": "Hi"}]) as stream:
            async for delta in stream:
                print(delta.content, end="")
        async with client.synthesize("Hello there.", voice="af_heart") as speech:
            async for chunk in speech:
                play(chunk.audio)

        async with client.transcribe.live(microphone(), sample_rate=16000) as stream:
            async for segment in stream:
                show(segment.text, segment.is_final)
        said = (await client.transcribe.file("speech.wav")).text

        async with client.embed(lines) as stream:
            async for answer in stream:
                keep(answer.index, answer.vector)

What is spoken may still be being written: `client.synthesize(delta.content async for delta in
stream)`.

Errors are `plait.errors` leaves, plus ConnectionLost and StreamCancelled.
"""

from plait.client.chat import ChatStream, Delta, ToolCall
from plait.client.connection import Client
from plait.client.embed import Embedding, EmbedStream
from plait.client.errors import ConnectionLost, StreamCancelled
from plait.client.opening import connect
from plait.client.speech import AudioChunk, Mark, SpeechStream, Word
from plait.client.stream import Item, Stream
from plait.client.transcribe import Transcribe
from plait.client.transcription import Segment, SpeechEvent, Transcription, TranscriptionStream

__all__ = [
    "AudioChunk",
    "ChatStream",
    "Client",
    "ConnectionLost",
    "Delta",
    "EmbedStream",
    "Embedding",
    "Item",
    "Mark",
    "Segment",
    "SpeechEvent",
    "SpeechStream",
    "Stream",
    "StreamCancelled",
    "ToolCall",
    "Transcribe",
    "Transcription",
    "TranscriptionStream",
    "Word",
    "connect",
]
