"""Names of the files of an export, on which its writer and its reader agree."""

from resmlp_mt.files.finding import EXPORT_CONFIG

CONFIG = EXPORT_CONFIG
MIXING = "mixing.safetensors"
WEIGHTS = "weights.safetensors"  # of a folded model
COMPRESSED = "weights.safetensors.gz"  # in its place, where "weight_bits" stands in CONFIG
SHORTLIST = "shortlist.safetensors"
PREVIEW = "preview.safetensors"
CLASSIFIER = "classifier.onnx"  # the graph of a classifier that is not folded
MADE = MIXING, WEIGHTS, COMPRESSED, SHORTLIST, PREVIEW, CLASSIFIER
# Folders of format 5, which may be made anew, have graphs, too, which nobody reads.
MADE += "encoder.onnx", "step.onnx", "step-shortlist.onnx", "select.onnx"
# Of what stands in CONFIG and the other files: a change that older or newer code would misread
# takes the next number.
FORMAT = 6
READABLE = (5, FORMAT)
