/* The channel MLP of rows that are padded to whole blocks with zeros. */
#ifndef MLP_H
#define MLP_H

#include "decoder.h"
#include "numbers.h"
#include "products.h"
#include "room.h"

/* x += mlp(x). x: (rows, stride). y and hidden have room for CHUNK rows. `gelu` is a constant where
 * it is called. */
INLINE void apply_mlp_with(floats gelu(floats), const Mlp *mlp, int64_t rows, float *x, float *y,
                           float *hidden, Room *room)
{
    int64_t channels = mlp->first.inputs, stride = padded(channels, BLOCK);
    int64_t wide = padded(mlp->first.outputs, BLOCK);
    for (; rows > 0; rows -= CHUNK, x += CHUNK * stride) {
        int64_t some = rows < CHUNK ? rows : CHUNK;
        for (int64_t row = 0; row < some && mlp->norm >= 0; row++)
            normalise(y + row * stride, x + row * stride, channels, mlp->norm);
        multiply(&mlp->first, some, mlp->norm < 0 ? x : y, stride, hidden, wide, 0, room);
        for (int64_t i = 0; i < some * wide; i += LANES)
            *(floats *)(hidden + i) = gelu(*(floats *)(hidden + i));
        multiply(&mlp->second, some, hidden, wide, x, stride, 1, room);
    }
}

/* Products in 8 bits have enough of GELU nearby. */
static void apply_mlp(const Mlp *mlp, int64_t rows, float *x, float *y, float *hidden, Room *room)
{
    if (mlp->second.bytes)
        apply_mlp_with(gelu_near, mlp, rows, x, y, hidden, room);
    else
        apply_mlp_with(gelu_of, mlp, rows, x, y, hidden, room);
}

#endif
