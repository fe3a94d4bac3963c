# Sourced by scripts that train, and then go on with what was trained.

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
