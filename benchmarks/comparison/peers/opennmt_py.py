"""OpenNMT-py: training by its own command, `onmt_train`. Its Transformer is pre-norm; the work is the same."""

from collections.abc import Sequence
from pathlib import Path

from comparison.commands import script
from comparison.job import Engine, Job, serve
from comparison.training_commands import Length, read_reports, training, write_settings, write_vocabulary


def by_command(job: Job) -> Engine:
    """Run `onmt_train`."""
    shape = job.shape

    def prepare(folder: Path, length: Length) -> Sequence[object]:
        write_vocabulary(job, folder / "vocabulary")
        settings = {
            "data": {
                "corpus": {
                    "path_src": str(job.material("spaced.source")),
                    "path_tgt": str(job.material("spaced.target")),
                }
            },
            "src_vocab": str(folder / "vocabulary"),
            "tgt_vocab": str(folder / "vocabulary"),
            "src_vocab_size": shape.vocabulary,
            "tgt_vocab_size": shape.vocabulary,
            "share_vocab": True,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "save_model": str(folder / "model"),
            "save_checkpoint_steps": 1_000_000,
            "world_size": 1,
            "gpu_ranks": [],
            "train_steps": length.total,
            "report_every": length.warmup,
            "valid_steps": 1_000_000,
            "batch_type": "tokens",
            "batch_size": shape.batch_tokens,
            "bucket_size": shape.pairs,
            "num_workers": 0,  # another process would take a core from the training
            "normalization": "tokens",
            "accum_count": [1],
            "optim": "adam",
            "adam_beta2": 0.98,
            "learning_rate": 1.0,
            "decay_method": "noam",
            "warmup_steps": 4000,
            "max_grad_norm": 0,
            "label_smoothing": 0.1,
            "encoder_type": "transformer",
            "decoder_type": "transformer",
            "position_encoding": True,
            "layers": shape.layers,
            "hidden_size": shape.d_model,
            "word_vec_size": shape.d_model,
            "heads": shape.heads,
            "transformer_ff": shape.d_ff,
            "dropout": [shape.dropout],
            "attention_dropout": [0.0],
            "param_init_glorot": True,
            "param_init": 0.0,
        }
        write_settings(folder / "settings.yaml", settings)
        return [script("onmt_train"), "-config", folder / "settings.yaml"]

    return training(job, "opennmt-py", prepare, read_reports)


if __name__ == "__main__":
    serve({"training": by_command, "memory": by_command})
