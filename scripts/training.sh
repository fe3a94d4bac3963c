# Sourced by scripts that train or score: what a training came to, and what it learned from.

is_trained() { # RUN UPDATES
    grep -qs "train_num_updates\": \"$2\"" "$1/train.log"
}

expect_trained() { # RUN UPDATES
    # A training that SIGTERM stopped ends with status 0 too.
    is_trained "$@" || {
        echo "$(basename "$0"): the training in $1 was stopped; the same command goes on" >&2
        exit 1
    }
}

count_pairs() { # DATA
    # fairseq trains on train, train1 and so on together.
    python -c "import json, sys
print(sum(part['kept'] for name, part in json.load(sys.stdin).items() if 'train' in name))" \
        <"$1/report.json"
}
