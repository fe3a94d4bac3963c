/* Room for the intermediate values of a classifier. */
#ifndef WORKSPACE_H
#define WORKSPACE_H

#include <stddef.h>

#include "classifier.h"
#include "room.h"

typedef struct {
    float *x, *packed[2];      /* (N, stride), of an image; in 8 bits N is padded */
    float *steps[2];           /* (N), of what is packed in 8 bits */
    float *y, *hidden, *class; /* (CHUNK, stride), (CHUNK, hidden), (stride), of a thread */
    Room room;                 /* of products */
} Workspace;

/* Sets all pointers of a workspace that begins at `start`; returns how many bytes it takes. */
static inline int64_t lay_out_workspace(const Classifier *classifier, void *start, Workspace *to)
{
    int64_t stride = padded(classifier->channels, BLOCK), size = sizeof(float);
    int64_t image = classifier->patches * stride * size;
    int64_t packed = padded(classifier->patches, INPUTS) * stride * size;
    int64_t widest = padded(classifier->hidden, BLOCK);
    widest = widest > stride ? widest : stride;
    widest = widest > classifier->embed.inputs ? widest : classifier->embed.inputs;
    widest = widest > classifier->patches ? widest : classifier->patches;
    Workspace none;
    to = to ? to : &none;
    char *begin = (char *)padded((intptr_t)start, 64), *place = begin;
    to->x = (float *)take(&place, image);
    to->packed[0] = (float *)take(&place, packed);
    to->packed[1] = (float *)take(&place, packed);
    to->steps[0] = (float *)take(&place, classifier->patches * size);
    to->steps[1] = (float *)take(&place, classifier->patches * size);
    to->y = (float *)take(&place, CHUNK * stride * size);
    to->hidden = (float *)take(&place, CHUNK * widest * size);
    to->class = (float *)take(&place, stride * size);
    to->room.scales = (float *)take(&place, CHUNK * size);
    to->room.sums = (int32_t *)take(&place, CHUNK * size);
    to->room.inputs = (int8_t *)take(&place, CHUNK * padded(widest, INPUTS));
    return place - begin + 64;
}

#endif
