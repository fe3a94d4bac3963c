/* What there is one of, for all kinds of processors. */
#include "encoding.h"
#include "room.h"
#include "workspace.h"

/* Bytes of what Python hands over. It compares them with its own, since an older build may have
 * others. */
const int64_t step_structures[] = {sizeof(Layer), sizeof(Preview), sizeof(Decoder), sizeof(Step),
                                   sizeof(Search)};
const int64_t encode_structures[] = {sizeof(EncoderLayer), sizeof(Encoder), sizeof(Encoding)};
const int64_t classify_structures[] = {sizeof(Block), sizeof(Classifier), sizeof(Batch)};

int64_t count_room(const Decoder *decoder, const Step *step)
{
    Room room;
    return lay_out(decoder, step, &room);
}

int64_t count_classifier_room(const Classifier *classifier)
{
    return lay_out_workspace(classifier, NULL, NULL);
}

int64_t count_encoder_room(const Encoder *encoder, const Encoding *encoding)
{
    return lay_out_bench(encoder, encoding->longest, NULL, NULL);
}

int has_avx512(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* All of AVX-512 that x86-64-v4 has, since avx512.c is compiled for that. */
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
#else
    return 0;
#endif
}

int has_avx2(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    /* Numbers in 16 bits (f16c) are older than AVX2, and not all compilers can ask for them. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}
