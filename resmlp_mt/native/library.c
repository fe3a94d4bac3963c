/* The single definitions, for all kinds of processors. */
#include "encoding.h"
#include "room.h"
#include "workspace.h"

/* Sizes of the structures that Python hands over, in bytes. It compares them with its own, since an
 * older build may have others. */
const int64_t search_structures[] = {sizeof(Layer), sizeof(Preview), sizeof(Decoder), sizeof(Step),
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

/* Which kinds of processors this one is. */
#if defined(__x86_64__)
#include <cpuid.h>

/* Whether the processor has all these bits of leaf 7, and the system keeps the registers of `state`.
 * The compilers' own functions do not know all kinds, and ziglang's find none. */
static int has_bits(uint32_t leaf, uint32_t eax, uint32_t ebx, uint32_t ecx, uint32_t state)
{
    uint32_t a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || ~c & (bit_OSXSAVE | bit_FMA | bit_F16C))
        return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & state) != state || !__get_cpuid_count(7, leaf, &a, &b, &c, &d))
        return 0;
    return !(~a & eax) && !(~b & ebx) && !(~c & ecx);
}

int has_avx2(void) { return has_bits(0, 0, bit_AVX2, 0, 0x6); }
int has_avxvnni(void) { return has_avx2() && has_bits(1, 1 << 4, 0, 0, 0x6); }
int has_avx512(void)
{
    uint32_t needed = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ | bit_AVX512CD;
    return has_avx2() && has_bits(0, 0, needed, bit_AVX512VNNI, 0xe6);
}
#else
int has_avx512(void) { return 0; }
int has_avx2(void) { return 0; }
int has_avxvnni(void) { return 0; }
#endif

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

/* By the bits of asm/hwcap.h, which older systems do not know. */
int has_dotprod(void) { return getauxval(AT_HWCAP) >> 20 & 1; }
int has_i8mm(void) { return has_dotprod() && getauxval(26 /* AT_HWCAP2 */) >> 13 & 1; }
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static int has(const char *name)
{
    int found = 0;
    size_t size = sizeof found;
    return !sysctlbyname(name, &found, &size, NULL, 0) && found;
}

int has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
int has_i8mm(void) { return has_dotprod() && has("hw.optional.arm.FEAT_I8MM"); }
#else
int has_dotprod(void) { return 0; }
int has_i8mm(void) { return 0; }
#endif

/* Weights are handed over as little-endian machines have them. */
int has_plain(void) { return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; }
