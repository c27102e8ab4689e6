"""Names under which a checkpoint that also sees and hears keeps what is not its text model."""

OTHER_TOWERS = ("model.vision_tower.", "model.embed_vision.", "model.audio_tower.", "model.embed_audio.")
