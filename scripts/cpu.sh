# Sourced by what trains on a CPU. Elsewhere the variables mean nothing.
# An allocator that keeps the memory of large tensors for the next ones makes training faster.
# glibc can be told to, but then its memory grows with the number of updates. tcmalloc's does not.
export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592
tcmalloc=libtcmalloc_minimal.so.4 # of Debian's package libtcmalloc-minimal4
# Where it is not installed, the loader says so and goes on.
if [ -z "$(LD_PRELOAD=$tcmalloc sh -c : 2>&1)" ]; then
    export LD_PRELOAD+=" $tcmalloc" # behind what is there
fi
# Threads that wait for a busy core sleep instead of spinning, which makes training many times
# as slow where another program takes one of two cores.
export OMP_WAIT_POLICY=PASSIVE
