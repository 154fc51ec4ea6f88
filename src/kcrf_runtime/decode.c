/* Viterbi, forward-backward and posterior decoding, for chains of both orders.

   A state is a label or, in chains of second order, a possible pair of labels; the state at t is then (y_{t-1}, y_t).
   Transitions are blocks, one for each label in the middle: from the pairs that end in it to those that begin with it.
   A chain of first order has one block. Of equal scores the smaller label counts, from the end of a sequence on. */

#include "internal.h"

#include <math.h>
#include <stdlib.h>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

struct block {
    const int32_t *into; /* [height] states that lead here; NULL: all in their order */
    size_t height, after, width, stride;
    const double *table;
};

struct chain {
    size_t Y, P, T, stride, begin, step; /* stride: of rows of states; begin: the first position that has a state; step: of scores */
    const double *scores, *start, *end, *pairs, *table;
    size_t pairs_step, table_step; /* 0: all positions share them */
    const double *lead;            /* [stride] of a chain of first order; NULL: not known */
    uint64_t *likely;              /* [T] labels that the next ones may follow, as bits */
    const int32_t *first, *second, *from, *into, *into_from, *block;
};

static const double *lead_of(const struct chain *C) { return C->Y <= 64 ? C->table + 2 * C->Y * C->stride : NULL; }

static struct chain chain_of(const kcrf_tagger *tagger, const double *scores)
{
    const kcrf_model *model = tagger->model;
    const struct meta *meta = model->meta;
    struct chain C = {.Y = meta->labels, .P = meta->labels, .T = tagger->T, .stride = model->stride, .step = model->stride};
    C.scores = scores;
    C.start = model->numbers + meta->start;
    C.end = model->numbers + meta->end;
    C.table = model->padded;
    if (meta->order == 2) {
        size_t Y = C.Y, P = C.P = meta->pair_states;
        C.first = model->states, C.second = C.first + P, C.from = C.second + P, C.into = C.from + Y + 1;
        C.into_from = C.into + P, C.block = C.into_from + Y + 1;
        C.stride = kcrf_stride(P), C.begin = 1;
        C.table = model->numbers + meta->triples;
        C.pairs = meta->edges_apart ? tagger->edges.memory : model->numbers + meta->edges;
        C.pairs_step = meta->edges_apart ? P : 0;
    } else if (meta->edges_apart) {
        C.table = tagger->edges.memory;
        C.table_step = C.Y * C.Y;
    } else
        C.lead = lead_of(&C);
    return C;
}

static size_t blocks(const struct chain *C) { return C->first ? C->Y : 1; }

static struct block block_of(const struct chain *C, size_t j, size_t t)
{
    struct block B = {NULL, C->P, 0, C->P, C->table_step ? C->Y : C->stride, C->table + t * C->table_step};
    if (C->first) {
        B.into = C->into + C->into_from[j];
        B.height = (size_t)(C->into_from[j + 1] - C->into_from[j]);
        B.after = (size_t)C->from[j];
        B.width = B.stride = (size_t)(C->from[j + 1] - C->from[j]);
        B.table = C->table + C->block[j];
    } else if (!C->table_step)
        B.width = C->stride; /* with the labels that nothing leads to */
    return B;
}

static size_t source(const struct block *B, size_t a) { return B->into ? (size_t)B->into[a] : a; }
static size_t label_of(const struct chain *C, size_t p) { return C->second ? (size_t)C->second[p] : p; }
static size_t first_of(const struct chain *C, size_t p) { return C->first ? (size_t)C->first[p] : p; }

/* Score of a state apart from transitions. */
static double own_score(const struct chain *C, size_t t, size_t p)
{
    double score = C->scores[t * C->step + label_of(C, p)];
    return C->pairs ? C->pairs[t * C->pairs_step + p] + score : score;
}

/* now[j] = max over i of before[i] + E[i, j], for j < width. */
EACH_WIDTH static void max_plus(const double *restrict before, const struct block *B, double *restrict now)
{
    size_t n = B->height, width = B->width, stride = B->stride, j = 0;
    const double *restrict E = B->table;
#if defined(__aarch64__) && defined(__ARM_NEON)
    for (; j + 8 <= width; j += 8) { /* held in registers, which GCC does not do by itself */
        float64x2_t a = vdupq_n_f64(-INFINITY), b = a, c = a, d = a;
        const double *row = E + j;
        for (size_t i = 0; i < n; i++, row += stride) {
            float64x2_t value = vdupq_n_f64(before[i]);
            a = vmaxnmq_f64(a, vaddq_f64(value, vld1q_f64(row)));
            b = vmaxnmq_f64(b, vaddq_f64(value, vld1q_f64(row + 2)));
            c = vmaxnmq_f64(c, vaddq_f64(value, vld1q_f64(row + 4)));
            d = vmaxnmq_f64(d, vaddq_f64(value, vld1q_f64(row + 6)));
        }
        vst1q_f64(now + j, a);
        vst1q_f64(now + j + 2, b);
        vst1q_f64(now + j + 4, c);
        vst1q_f64(now + j + 6, d);
    }
#endif
    for (size_t k = j; k < width; k++)
        now[k] = -INFINITY;
    for (size_t i = 0; i < n && j < width; i++) {
        const double value = before[i], *restrict row = E + i * stride;
        for (size_t k = j; k < width; k++) {
            const double next = value + row[k];
            now[k] = next > now[k] ? next : now[k];
        }
    }
}

/* The same and `scores`, without labels that nothing follows: every label has a better score behind the best one, even
   if all else speaks for them. Returns the labels that are left as bits. *top is the largest entry, before and now. */
EACH_WIDTH static uint64_t max_plus_likely(const struct chain *C, const double *restrict before, const double *restrict scores, double *top, double *restrict now)
{
    const size_t Y = C->Y, S = C->stride;
    const double limit = *top - 1e-9 * (1 + fabs(*top)), *lead = C->lead; /* far above rounding */
    uint64_t likely = 0;
#if defined(__aarch64__) && defined(__ARM_NEON)
    size_t n = 0, rows[64];
    uint64x2_t bit = {1, 2}, found = vdupq_n_u64(0);
    float64x2_t best = vdupq_n_f64(-INFINITY);
    for (size_t y = 0; y < S; y += 2, bit = vshlq_n_u64(bit, 2))
        found = vorrq_u64(found, vandq_u64(bit, vcgeq_f64(vaddq_f64(vld1q_f64(before + y), vld1q_f64(lead + y)), vdupq_n_f64(limit))));
    likely = (vgetq_lane_u64(found, 0) | vgetq_lane_u64(found, 1)) & (~(uint64_t)0 >> (64 - Y));
    for (uint64_t left = likely; left; left &= left - 1)
        rows[n++] = LOWEST(left);
    for (size_t j = 0; j < S; j += 8) {
        float64x2_t a = vdupq_n_f64(-INFINITY), b = a, c = a, d = a;
        for (size_t i = 0; i < n; i++) {
            const double *row = C->table + rows[i] * S + j;
            float64x2_t value = vdupq_n_f64(before[rows[i]]);
            a = vmaxnmq_f64(a, vaddq_f64(value, vld1q_f64(row)));
            b = vmaxnmq_f64(b, vaddq_f64(value, vld1q_f64(row + 2)));
            c = vmaxnmq_f64(c, vaddq_f64(value, vld1q_f64(row + 4)));
            d = vmaxnmq_f64(d, vaddq_f64(value, vld1q_f64(row + 6)));
        }
        a = vaddq_f64(a, vld1q_f64(scores + j));
        b = vaddq_f64(b, vld1q_f64(scores + j + 2));
        c = vaddq_f64(c, vld1q_f64(scores + j + 4));
        d = vaddq_f64(d, vld1q_f64(scores + j + 6));
        vst1q_f64(now + j, a);
        vst1q_f64(now + j + 2, b);
        vst1q_f64(now + j + 4, c);
        vst1q_f64(now + j + 6, d);
        best = vmaxnmq_f64(best, vmaxnmq_f64(vmaxnmq_f64(a, b), vmaxnmq_f64(c, d)));
    }
    *top = vmaxnmvq_f64(best);
#else
#if defined(__SSE2__)
    for (size_t y = 0; y < S; y += 2) {
        __m128d sum = _mm_add_pd(_mm_loadu_pd(before + y), _mm_loadu_pd(lead + y));
        likely |= (uint64_t)_mm_movemask_pd(_mm_cmpge_pd(sum, _mm_set1_pd(limit))) << y;
    }
    likely &= ~(uint64_t)0 >> (64 - Y);
#else
    for (size_t y = 0; y < Y; y++)
        likely |= (uint64_t)(before[y] + lead[y] >= limit) << y;
#endif
    const double *restrict E = C->table;
    double best[8];
    for (size_t k = 0; k < 8; k++)
        best[k] = -INFINITY;
    for (size_t j = 0; j < S; j += 8) { /* held in registers */
        double next[8];
        for (size_t k = 0; k < 8; k++)
            next[k] = -INFINITY;
        for (uint64_t left = likely; left; left &= left - 1) {
            const double value = before[LOWEST(left)], *row = E + LOWEST(left) * S + j;
            AS_VECTOR
            for (size_t k = 0; k < 8; k++)
                next[k] = value + row[k] > next[k] ? value + row[k] : next[k];
        }
        AS_VECTOR
        for (size_t k = 0; k < 8; k++) {
            now[j + k] = next[k] + scores[j + k];
            best[k] = now[j + k] > best[k] ? now[j + k] : best[k];
        }
    }
    for (size_t half = 4; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            best[k] = best[k + half] > best[k] ? best[k + half] : best[k];
    *top = best[0];
#endif
    return likely;
}

static void first_row(const struct chain *C, double *now)
{
    for (size_t p = 0; p < C->P; p++) {
        double begin = C->start[first_of(C, p)];
        now[p] = (C->begin ? begin + C->scores[first_of(C, p)] : begin) + own_score(C, C->begin, p);
    }
}

/* Best scores of beginnings that end in each state, rows [T, stride]; gathered [P] is scratch. Returns the last row. */
static double *best_beginnings(const struct chain *C, double *rows, double *gathered)
{
    double *now = rows + C->begin * C->stride, top = -INFINITY;
    first_row(C, now);
    for (size_t p = 0; p < C->stride && C->likely; p++) {
        now[p] = p < C->P ? now[p] : -INFINITY;
        top = now[p] > top ? now[p] : top;
    }
    for (size_t t = C->begin + 1; t < C->T; t++, now += C->stride) {
        double *next = now + C->stride;
        if (C->likely) {
            C->likely[t - 1] = max_plus_likely(C, now, C->scores + t * C->step, &top, next);
            continue;
        }
        for (size_t j = 0; j < blocks(C); j++) {
            struct block B = block_of(C, j, t);
            for (size_t a = 0; a < B.height && B.into; a++)
                gathered[a] = now[B.into[a]];
            max_plus(B.into ? gathered : now, &B, next + B.after);
        }
        if (C->pairs)
            for (size_t p = 0; p < C->P; p++)
                next[p] += own_score(C, t, p);
        else
            for (size_t p = 0; p < C->P; p++)
                next[p] += C->scores[t * C->step + p];
    }
    return now;
}

static struct block block_into(const struct chain *C, size_t state, size_t t, const double **column)
{
    struct block B = block_of(C, C->first ? (size_t)C->first[state] : 0, t);
    *column = B.table + (state - B.after);
    return B;
}

static size_t best_before(const struct chain *C, const double *now, size_t state, size_t t)
{
    const double *column = C->table + (C->Y + state) * C->stride; /* the transpose: its entries stand together */
    double top = -INFINITY;
    size_t best = 0;
    for (uint64_t likely = C->likely ? C->likely[t - 1] : 0; likely; likely &= likely - 1) {
        size_t a = LOWEST(likely);
        if (now[a] + column[a] > top)
            top = now[best = a] + column[a];
    }
    if (C->likely)
        return best;
    struct block B = block_into(C, state, t, &column);
    best = B.height ? source(&B, 0) : 0;
    for (size_t a = 0; a < B.height; a++) {
        double value = now[source(&B, a)] + column[a * B.stride];
        if (value > top) {
            top = value;
            best = source(&B, a);
        }
    }
    return best;
}

/* The best labels of T > 0 positions and their score; minus infinity where no labelling is possible. */
static double best_path(const struct chain *C, double *rows, double *gathered, int32_t *path)
{
    if (C->T == 1 && C->begin) { /* no pair yet */
        double top = -INFINITY;
        path[0] = 0;
        for (size_t y = 0; y < C->Y; y++) {
            double value = C->start[y] + C->scores[y] + C->end[y];
            if (value > top) {
                top = value;
                path[0] = (int32_t)y;
            }
        }
        return top;
    }
    double *now = best_beginnings(C, rows, gathered), top = -INFINITY;
    size_t state = 0;
    for (size_t p = 0; p < C->P; p++) {
        double value = now[p] + C->end[label_of(C, p)];
        if (value > top || (value == top && label_of(C, p) < label_of(C, state))) {
            top = value;
            state = p;
        }
    }
    for (size_t t = C->T - 1; t > C->begin; t--) {
        path[t] = (int32_t)label_of(C, state);
        now -= C->stride;
        state = best_before(C, now, state, t);
    }
    path[C->begin] = (int32_t)label_of(C, state);
    path[0] = (int32_t)first_of(C, state);
    return top;
}

static int impossible(kcrf_tagger *tagger)
{
    return kcrf_fail(&tagger->error, KCRF_NUMERIC, "no labelling of a sequence has a finite score");
}

static int32_t *best_of(kcrf_tagger *tagger, struct chain *C)
{
    int32_t *path = kcrf_grow(tagger, &tagger->path, tagger->T + 1, sizeof *path);
    double *rows = kcrf_grow(tagger, &tagger->forward, (tagger->T + 1) * C->stride, sizeof *rows);
    C->likely = C->lead ? kcrf_grow(tagger, &tagger->likely, tagger->T + 1, sizeof *C->likely) : NULL;
    if (!path || !rows || (C->lead && !C->likely))
        return NULL;
    if (tagger->T && !(best_path(C, rows, rows + tagger->T * C->stride, path) > -INFINITY))
        return impossible(tagger), NULL;
    return path;
}

const int32_t *kcrf_viterbi(kcrf_tagger *tagger)
{
    if (!tagger->scored)
        return kcrf_fail(&tagger->error, KCRF_INPUT, "no sequence is set"), NULL;
    struct chain C = chain_of(tagger, tagger->scores.memory);
    tagger->has_marginals = false; /* the room of their messages is used */
    return best_of(tagger, &C);
}

/* ---------------------------------------------------------------------------------------------------- marginals */

static double log_sum(const double *values, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k < n; k++)
        top = values[k] > top ? values[k] : top;
    if (top == -INFINITY)
        return top;
    for (size_t k = 0; k < n; k++)
        sum += exp(values[k] - top);
    return top + log(sum);
}

/* Subtract the largest value, which is returned, from all, so that sums of them are exact to the last bits. */
static double lower(double *values, size_t n)
{
    double top = -INFINITY;
    for (size_t k = 0; k < n; k++)
        top = values[k] > top ? values[k] : top;
    for (size_t k = 0; k < n && isfinite(top); k++)
        values[k] -= top;
    return top;
}

/* Turn logarithms into shares of their sum, which are exact where large scores leave log Z with an error. */
static void to_shares(double *values, size_t n)
{
    double sum = 0;
    lower(values, n);
    for (size_t k = 0; k < n; k++)
        sum += values[k] = exp(values[k]);
    for (size_t k = 0; k < n; k++)
        values[k] /= sum;
}

/* Logarithms of forward and backward messages, rows [T, stride] each less their largest; scratch [P]. Returns log Z. */
static double log_messages(const struct chain *C, double *forward, double *backward, double *scratch)
{
    size_t S = C->stride, last = C->T - 1;
    first_row(C, forward + C->begin * S);
    double total = lower(forward + C->begin * S, C->P);
    for (size_t t = C->begin + 1; t < C->T; t++) {
        for (size_t j = 0; j < blocks(C); j++) {
            struct block B = block_of(C, j, t);
            for (size_t b = 0; b < B.width && B.after + b < C->P; b++) {
                for (size_t a = 0; a < B.height; a++)
                    scratch[a] = forward[(t - 1) * S + source(&B, a)] + B.table[a * B.stride + b];
                forward[t * S + B.after + b] = log_sum(scratch, B.height) + own_score(C, t, B.after + b);
            }
        }
        total += lower(forward + t * S, C->P);
    }
    for (size_t p = 0; p < C->P; p++)
        backward[last * S + p] = C->end[label_of(C, p)];
    for (size_t t = last; t > C->begin; t--) {
        lower(backward + t * S, C->P);
        for (size_t j = 0; j < blocks(C); j++) {
            struct block B = block_of(C, j, t);
            size_t width = B.width < C->P - B.after ? B.width : C->P - B.after;
            for (size_t a = 0; a < B.height; a++) {
                for (size_t b = 0; b < width; b++)
                    scratch[b] = B.table[a * B.stride + b] + own_score(C, t, B.after + b) + backward[t * S + B.after + b];
                backward[(t - 1) * S + source(&B, a)] = log_sum(scratch, width);
            }
        }
    }
    lower(backward + C->begin * S, C->P);
    for (size_t p = 0; p < C->P; p++)
        scratch[p] = forward[last * S + p] + C->end[label_of(C, p)];
    return total + log_sum(scratch, C->P);
}

/* Sums over i of row[i] times row i of a table [Y, S]. Eight columns at a time, so that sums stay in registers. */
static inline void row_sums(const double *restrict row, const double *restrict table, size_t Y, size_t S, double *restrict out)
{
    for (size_t j = 0; j < S; j += 8) {
        double sums[8] = {0};
        for (size_t i = 0; i < Y; i++)
            for (size_t k = 0; k < 8; k++)
                sums[k] += row[i] * table[i * S + j + k];
        memcpy(out + j, sums, sizeof sums);
    }
}

/* Scaled messages of a chain of first order with shared transitions. False where an entry may have been lost by
   underflow: all terms are positive, so that results are right where the smallest is far from underflow at every step. */
EACH_WIDTH static bool scaled_messages(
    const struct chain *C, const kcrf_model *model, double *forward, double *backward, double *node, double *log_z)
{
    size_t Y = C->Y, S = C->stride, T = C->T;
    const double *exponentials = model->exponentials;
    double *factors = backward + T * S; /* [stride] scores of the first position at first */
    memcpy(factors, C->scores, Y * sizeof *factors);
    double total = lower(factors, Y); /* beside the largest `start` could be lost */
    for (size_t y = 0; y < Y; y++)
        factors[y] += C->start[y];
    for (size_t t = 0; t < T; t++) {
        double top = -INFINITY, bottom = INFINITY, sum = 0, least = 1.0, *now = forward + t * S, *own = node + t * Y;
        const double *scores = t ? C->scores + t * C->step : factors, *before = now - S;
        for (size_t y = 0; y < Y; y++) {
            own[y] = scores[y];
            top = own[y] > top ? own[y] : top;
            bottom = own[y] < bottom && own[y] > -INFINITY ? own[y] : bottom;
        }
        if (!(top > -INFINITY) || !(top - bottom + model->depth < 500))
            return false;
        for (size_t y = 0; y < Y; y++)
            own[y] = exp(own[y] - top);
        if (t == 0)
            for (size_t y = 0; y < S; y++)
                now[y] = y < Y ? 1.0 : 0.0;
        else
            row_sums(before, exponentials, Y, S, now);
        for (size_t y = 0; y < Y; y++) {
            now[y] *= own[y];
            sum += now[y];
            least = now[y] > 0 && now[y] < least ? now[y] : least;
        }
        if (!(sum > 0) || !(least / sum > 1e-75))
            return false;
        for (size_t y = 0; y < Y; y++)
            now[y] /= sum;
        total += log(sum) + top + (t ? model->shift : 0.0);
    }
    double top = -INFINITY, bottom = INFINITY, sum = 0;
    for (size_t y = 0; y < Y; y++) {
        top = C->end[y] > top ? C->end[y] : top;
        bottom = C->end[y] < bottom && C->end[y] > -INFINITY ? C->end[y] : bottom;
    }
    if (!(top > -INFINITY) || !(top - bottom < 150))
        return false;
    double *last = backward + (T - 1) * S;
    for (size_t y = 0; y < Y; y++)
        sum += forward[(T - 1) * S + y] * (last[y] = exp(C->end[y] - top));
    if (!(sum > 1e-200))
        return false;
    *log_z = total + log(sum) + top;
    for (size_t t = T - 1; t > 0; t--) {
        double *now = backward + (t - 1) * S, least = 1.0, most = 0;
        for (size_t y = 0; y < S; y++)
            factors[y] = y < Y ? backward[t * S + y] * node[t * Y + y] : 0.0;
        row_sums(factors, exponentials + Y * S, Y, S, now);
        for (size_t y = 0; y < Y; y++)
            most = now[y] > most ? now[y] : most;
        for (size_t y = 0; y < Y && most > 0; y++) {
            now[y] /= most;
            least = now[y] > 0 && now[y] < least ? now[y] : least;
        }
        if (!(most > 0) || !(least > 1e-75))
            return false;
    }
    for (size_t t = 0; t < T; t++) {
        double own = 0;
        for (size_t y = 0; y < Y; y++)
            own += node[t * Y + y] = forward[t * S + y] * backward[t * S + y];
        if (!(own > 1e-200))
            return false;
        for (size_t y = 0; y < Y; y++)
            node[t * Y + y] /= own;
    }
    return true;
}

static double *marginals(kcrf_tagger *tagger)
{
    if (!tagger->scored)
        return kcrf_fail(&tagger->error, KCRF_INPUT, "no sequence is set"), NULL;
    struct chain C = chain_of(tagger, tagger->scores.memory);
    size_t Y = C.Y, P = C.P, S = C.stride, T = C.T;
    double *node = kcrf_grow(tagger, &tagger->best, T * Y + 1, sizeof *node);
    double *forward = kcrf_grow(tagger, &tagger->forward, (T + 1) * S, sizeof *forward);
    double *backward = kcrf_grow(tagger, &tagger->backward, (T + 2) * S, sizeof *backward);
    if (!node || !forward || !backward)
        return NULL;
    if (tagger->has_marginals || T == 0) {
        tagger->log_z = T ? tagger->log_z : 0.0;
        return node;
    }
    const kcrf_model *model = tagger->model;
    if (C.table == model->padded && scaled_messages(&C, model, forward, backward, node, &tagger->log_z)) {
        tagger->has_marginals = true;
        return node;
    }
    double total = 0;
    for (size_t t = 0; t < T; t++) { /* scores less the largest of a position: beside it transitions could be lost */
        memcpy(node + t * Y, C.scores + t * C.step, Y * sizeof *node);
        total += lower(node + t * Y, Y);
    }
    C.scores = node;
    C.step = Y;
    if (T == 1 && C.begin) {
        for (size_t y = 0; y < Y; y++)
            node[y] = C.start[y] + node[y] + C.end[y];
        tagger->log_z = total + log_sum(node, Y);
        to_shares(node, Y);
    } else {
        double *shares = backward + (T + 1) * S; /* [P] */
        tagger->log_z = total + log_messages(&C, forward, backward, shares);
        memset(node, 0, T * Y * sizeof *node);
        for (size_t t = C.begin; t < T; t++) {
            for (size_t p = 0; p < P; p++)
                shares[p] = forward[t * S + p] + backward[t * S + p];
            to_shares(shares, P);
            for (size_t p = 0; p < P; p++) {
                node[t * Y + label_of(&C, p)] += shares[p];
                if (t == 1 && C.begin)
                    node[first_of(&C, p)] += shares[p];
            }
        }
    }
    if (!isfinite(tagger->log_z))
        return impossible(tagger), NULL;
    tagger->has_marginals = true;
    return node;
}

const double *kcrf_marginals(kcrf_tagger *tagger) { return marginals(tagger); }

/* Labels of the largest marginals; where transitions are impossible, the possible labelling with the largest sum. */
static const int32_t *posterior_labels(kcrf_tagger *tagger)
{
    const double *node = marginals(tagger);
    int32_t *path = node ? kcrf_grow(tagger, &tagger->path, tagger->T + 1, sizeof *path) : NULL;
    struct chain C = chain_of(tagger, node);
    const struct meta *meta = tagger->model->meta;
    bool all = true;
    if (!path)
        return NULL;
    const double *edges = tagger->model->numbers + meta->edges;
    size_t count = meta->order == 2 ? C.P : C.Y * C.Y;
    for (size_t k = 0; k < count; k++)
        all &= edges[k] > -INFINITY;
    all &= count == C.Y * C.Y;
    for (size_t y = 0; y < C.Y; y++)
        all &= C.start[y] > -INFINITY && C.end[y] > -INFINITY;
    if (all) {
        for (size_t t = 0; t < C.T; t++) {
            size_t best = 0;
            for (size_t y = 1; y < C.Y; y++)
                if (node[t * C.Y + y] > node[t * C.Y + best])
                    best = y;
            path[t] = (int32_t)best;
        }
        return path;
    }
    /* A chain of first order whose possible transitions have the score 0. */
    size_t Y = C.Y, S = kcrf_stride(Y);
    double *possible = kcrf_grow(tagger, &tagger->sums, (2 * Y + 2) * S, sizeof *possible), *start = possible + 2 * Y * S;
    if (!possible)
        return NULL;
    for (size_t k = 0; k < 2 * Y * S; k++)
        possible[k] = -INFINITY;
    for (size_t k = 0; k < count; k++) {
        size_t i = C.first ? (size_t)C.first[k] : k / Y, j = C.first ? (size_t)C.second[k] : k % Y;
        if (edges[k] > -INFINITY)
            possible[i * S + j] = possible[(Y + j) * S + i] = 0.0;
    }
    for (size_t y = 0; y < Y; y++) {
        start[y] = C.start[y] > -INFINITY ? 0.0 : -INFINITY;
        start[S + y] = C.end[y] > -INFINITY ? 0.0 : -INFINITY;
    }
    struct chain plain = {.Y = Y, .P = Y, .T = C.T, .stride = S, .step = Y};
    plain.scores = node, plain.start = start, plain.end = start + S, plain.table = possible;
    return best_of(tagger, &plain);
}

const int32_t *kcrf_labels(kcrf_tagger *tagger)
{
    const struct meta *meta = tagger->model->meta;
    if (meta->posterior || !meta->bonus || !tagger->scored)
        return meta->posterior ? posterior_labels(tagger) : kcrf_viterbi(tagger);
    struct chain C = chain_of(tagger, tagger->scores.memory);
    const double *bonus = tagger->model->numbers + meta->bonus - 1, *edges = C.first ? C.pairs : C.table;
    size_t Y = C.Y, width = C.first ? C.P : Y * Y, rows = edges == tagger->model->padded ? 0 : meta->edges_apart ? C.T : 1;
    double *start = kcrf_grow(tagger, &tagger->sums, Y + rows * width, sizeof *start), *sums = start + Y;
    if (!start)
        return NULL;
    for (size_t y = 0; y < Y; y++)
        start[y] = C.start[y] + bonus[y];
    for (size_t t = 0; t < rows; t++)
        for (size_t k = 0; k < width; k++)
            sums[t * width + k] = edges[t * width + k] + bonus[Y + k];
    C.start = start;
    *(C.first ? &C.pairs : &C.table) = rows ? sums : tagger->model->with_bonus;
    C.lead = rows ? NULL : lead_of(&C);
    tagger->has_marginals = false; /* the room of their messages is used */
    return best_of(tagger, &C);
}

static double path_score(const struct chain *C, const int32_t *labels)
{
    size_t last = C->T - 1, Y = C->Y;
    double sum = C->start[labels[0]] + C->end[labels[last]] + C->scores[labels[0]];
    for (size_t t = 1; t < C->T; t++) {
        size_t i = (size_t)labels[t - 1], j = (size_t)labels[t];
        sum += C->scores[t * C->step + j];
        if (!C->first)
            sum += C->table[t * C->table_step + i * (C->table_step ? Y : C->stride) + j];
        else {
            size_t p = (size_t)C->from[i], q = 0;
            while (p < (size_t)C->from[i + 1] && (size_t)C->second[p] != j)
                p++;
            if (p == (size_t)C->from[i + 1])
                return -INFINITY;
            sum += C->pairs[t * C->pairs_step + p];
            if (t < 2)
                continue;
            const double *column;
            struct block B = block_into(C, p, t, &column);
            while (q < B.height && C->first[source(&B, q)] != labels[t - 2])
                q++;
            if (q == B.height)
                return -INFINITY;
            sum += column[q * B.stride];
        }
    }
    return sum;
}

int kcrf_log_probability(kcrf_tagger *tagger, const int32_t *labels, double *result)
{
    if (!marginals(tagger))
        return tagger->error.status;
    struct chain C = chain_of(tagger, tagger->scores.memory);
    for (size_t t = 0; t < C.T; t++)
        if (labels[t] < 0 || (size_t)labels[t] >= C.Y)
            return kcrf_fail(&tagger->error, KCRF_INPUT, "position %zu: %d is no label", t + 1, (int)labels[t]);
    double score = C.T ? path_score(&C, labels) - tagger->log_z : 0.0;
    *result = score < 0 ? score : 0.0;
    return KCRF_OK;
}
