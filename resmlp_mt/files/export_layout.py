"""Names of the files of an export, on which its writer and its reader agree."""

from resmlp_mt.files.finding import EXPORT_CONFIG

CONFIG = EXPORT_CONFIG
MIXING = "mixing.safetensors"
TRANSLATOR = ("encoder.onnx", "step.onnx")
WEIGHTS = "weights.safetensors"  # of a translator's graphs, and of a folded classifier's
COMPRESSED = "weights.safetensors.gz"  # in its place, where "weight_bits" stands in CONFIG
# With a shortlist: the step over the rows that the other selects, and which they are.
SELECTING = ("step-shortlist.onnx", "select.onnx")
SHORTLIST = "shortlist.safetensors"
PREVIEW = "preview.safetensors"
CLASSIFIER = "classifier.onnx"
# Of what stands in CONFIG and the other files: a change that older or newer code would misread
# takes the next number.
FORMAT = 5
READABLE = (2, 3, 4, FORMAT)
