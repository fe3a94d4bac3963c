# Sourced by what trains on a CPU. Elsewhere the variables mean nothing.
# glibc returns every large tensor to the system at once; keeping the memory makes training faster.
export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592
# Threads that wait for a busy core sleep instead of spinning, which makes training many times
# as slow where another program takes one of two cores.
export OMP_WAIT_POLICY=PASSIVE
