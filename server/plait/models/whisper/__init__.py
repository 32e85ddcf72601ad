"""Whisper's files: ggml as whisper.cpp loads it, checked and made from CTranslate2's."""
