"""Transcription with Whisper on whisper.cpp (pywhispercpp).

Pure, in the order the audio goes: `intake` (bytes -> samples), `detector` and `endpoint` (where is
speech), `hearing` (windows to decode, segments out; with `agreement`, `segment`, `tape`, `words`).
`decoder` is the model. How streams get processes of their own is told in `engine`.
"""
