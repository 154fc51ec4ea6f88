/* The loops of `_recursions.h` for one width of vectors; `_each_width.h` says what they are made of.

   Rows are padded with zeros to a stride of P doubles, a multiple of 8, of which the first W, a multiple of LANES, are
   ever touched. */

MAY_FUSE

#if LANES > 1
typedef double NAME(lanes) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef int64_t NAME(words) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef float NAME(floats) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define LANE(x, k) ((x)[k])
#else
typedef double NAME(lanes);
#define LANE(x, k) (x)
#endif

#define lanes NAME(lanes)
#define PARTS (8 / LANES) /* vectors that eight columns take */
#define FUSED(a, b, c) ((lanes)FUSED_double(a, b, c))
#define SPREAD(x) ((lanes)SPREAD_double(x))
#define AT(pointer, index) (((lanes *)(pointer))[index])
#define CONST_AT(pointer, index) (((const lanes *)(pointer))[index])
/* A statement for each vector of a row: at column `at`, number `part` of those of eight columns. */
#define EACH_VECTOR(width, statement)                                                                      \
    do {                                                                                                   \
        ptrdiff_t eight = 0;                                                                               \
        for (; eight + 8 <= (width); eight += 8)                                                           \
            UNROLL for (int part = 0; part < PARTS; part++) {                                              \
                const ptrdiff_t at = eight + part * LANES;                                                 \
                statement                                                                                  \
            }                                                                                              \
        UNROLL for (int part = 0; part < PARTS; part++) {                                                  \
            const ptrdiff_t at = eight + part * LANES;                                                     \
            if (at < (width)) {                                                                            \
                statement                                                                                  \
            }                                                                                              \
        }                                                                                                  \
    } while (0)

/* exp(x) for x <= 0, to an ulp; what would not be a normal number is zero, NaN stays NaN.
   exp(x) = 2^n exp(r), n = round(x / log 2), |r| <= log(2)/2, exp(r) by its series. */
static FORCE_INLINE TARGET DOUBLES NAME(exp)(DOUBLES x)
{
#if LANES > 1
    const double round = 6755399441055744.0; /* 1.5 * 2^52: what is added to it ends up an integer in the last bits */
    const lanes magic = SPREAD(round);
    lanes shifted = FUSED(x, SPREAD(1.4426950408889634), magic);
    lanes n = shifted - magic;
    lanes r = FUSED(n, SPREAD(-0.693147180369123816490), x);
    r = FUSED(n, SPREAD(-1.90821492927058770002e-10), r);
    lanes sum = FUSED(r, SPREAD(1.0 / 6227020800.0), SPREAD(1.0 / 479001600.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 39916800.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 3628800.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 362880.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 40320.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 5040.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 720.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 120.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 24.0));
    sum = FUSED(sum, r, SPREAD(1.0 / 6.0));
    sum = FUSED(sum, r, SPREAD(0.5));
    sum = FUSED(sum, r, SPREAD(1.0));
    sum = FUSED(sum, r, SPREAD(1.0));
    /* The last bits of `shifted` are n + 2^51; all of them but n's are shifted out. */
    NAME(words) power = ((NAME(words))shifted + 1023) << 52;
    sum = sum * (lanes)power;
    return (lanes)((NAME(words))sum & ~(NAME(words))(x < -708.0));
#else
    return x < -708.0 ? 0.0 : exp(x);
#endif
}

/* The sum of eight columns' sums, in one order at every width. */
static FORCE_INLINE TARGET double NAME(sum)(const lanes *x)
{
#if LANES == 8
    const lanes a = x[0];
    return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
#elif LANES == 4
    const lanes a = x[0] + x[1];
    return (a[0] + a[1]) + (a[2] + a[3]);
#elif LANES == 2
    const lanes a = x[0] + x[2], b = x[1] + x[3];
    return (a[0] + a[1]) + (b[0] + b[1]);
#else
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
#endif
}

static FORCE_INLINE TARGET DOUBLES NAME(larger)(DOUBLES x, DOUBLES y)
{
#if LANES > 1
    NAME(words) which = (NAME(words))(x > y);
    return (lanes)(((NAME(words))x & which) | ((NAME(words))y & ~which));
#else
    return x > y ? x : y;
#endif
}

/* LANES values from `at` on, of which `count` are there: the others are minus infinity. */
static FORCE_INLINE TARGET DOUBLES NAME(load)(const void *values, int single, ptrdiff_t at, ptrdiff_t count)
{
    lanes out;
#if LANES > 1
    if (count >= LANES) {
        if (single)
            return __builtin_convertvector(*(const NAME(floats) *)((const float *)values + at), lanes);
        return *(const lanes *)((const double *)values + at);
    }
#endif
    for (ptrdiff_t k = 0; k < LANES; k++)
        LANE(out, k) = k >= count ? -INFINITY
                       : single   ? ((const float *)values)[at + k]
                                  : ((const double *)values)[at + k];
    return out;
}

static FORCE_INLINE TARGET void NAME(store)(void *values, int single, ptrdiff_t at, ptrdiff_t count, DOUBLES x)
{
#if LANES > 1
    if (count >= LANES) {
        if (single)
            *(NAME(floats) *)((float *)values + at) = __builtin_convertvector(x, NAME(floats));
        else
            *(lanes *)((double *)values + at) = x;
        return;
    }
#endif
    for (ptrdiff_t k = 0; k < LANES && k < count; k++)
        if (single)
            ((float *)values)[at + k] = (float)LANE(x, k);
        else
            ((double *)values)[at + k] = LANE(x, k);
}

/* out = exp(values - shift), zeros from Y to a multiple of LANES where out is `padded`; returns the shift, which is the
   largest value. Where that is not finite, out is not to be used. */
static FORCE_INLINE TARGET double NAME(exponentials)(
    const void *values, int single, ptrdiff_t Y, double *out, int padded)
{
    double shift = -INFINITY;
    lanes top = NAME(load)(values, single, 0, Y);
    for (ptrdiff_t at = LANES; at < Y; at += LANES)
        top = NAME(larger)(NAME(load)(values, single, at, Y - at), top);
    for (int k = 0; k < LANES; k++)
        shift = LANE(top, k) > shift ? LANE(top, k) : shift;
    if (!isfinite(shift))
        return shift;
    for (ptrdiff_t at = 0; at < Y; at += LANES) {
        lanes x = NAME(exp)(NAME(load)(values, single, at, Y - at) - shift);
        if (padded)
            *(lanes *)(out + at) = x;
        else
            NAME(store)(out, 0, at, Y - at, x);
    }
    return shift;
}

/* `count` vectors of out = factors @ rows, [Y] times [Y, P], held in registers; WAYS of them share no chain of sums. */
static FORCE_INLINE TARGET void NAME(columns)(
    double *out, const double *factors, const double *rows, ptrdiff_t Y, ptrdiff_t P, const int count, const int ways)
{
    lanes sums[8];
    ptrdiff_t i = 0;
    for (int k = 0; k < count * ways; k++)
        sums[k] = SPREAD(0.0);
    for (; i + ways <= Y; i += ways)
        for (int way = 0; way < ways; way++)
            for (int k = 0; k < count; k++)
                sums[way * count + k] =
                    FUSED(SPREAD(factors[i + way]), CONST_AT(rows + (i + way) * P, k), sums[way * count + k]);
    for (; i < Y; i++)
        for (int k = 0; k < count; k++)
            sums[k] = FUSED(SPREAD(factors[i]), CONST_AT(rows + i * P, k), sums[k]);
    for (int way = 1; way < ways; way++)
        for (int k = 0; k < count; k++)
            sums[k] += sums[way * count + k];
    for (int k = 0; k < count; k++)
        AT(out, k) = sums[k];
}

/* out [W] = factors [Y] @ rows [Y, P]. Of 32 columns each, more than 16 have two chains of sums and others four: the
   order of sums follows columns, not vectors. */
static FORCE_INLINE TARGET void NAME(product)(
    double *out, const double *factors, const double *rows, ptrdiff_t Y, ptrdiff_t P)
{
#if LANES == 8
    ptrdiff_t left = (Y + 7) / 8, at = 0;
    for (; left >= 4; left -= 4, at += 32)
        NAME(columns)(out + at, factors, rows + at, Y, P, 4, 2);
    if (left == 3)
        NAME(columns)(out + at, factors, rows + at, Y, P, 3, 2);
    else if (left == 2)
        NAME(columns)(out + at, factors, rows + at, Y, P, 2, 4);
    else if (left == 1)
        NAME(columns)(out + at, factors, rows + at, Y, P, 1, 4);
#else
    for (ptrdiff_t at = 0; at < Y;) {
        const ptrdiff_t end = Y - at < 32 ? Y : at + 32;
        if (end - at <= 16) {
            for (; at + LANES < end; at += 2 * LANES)
                NAME(columns)(out + at, factors, rows + at, Y, P, 2, 4);
            if (at < end)
                NAME(columns)(out + at, factors, rows + at, Y, P, 1, 4);
            break;
        }
        for (; at + 3 * LANES < end; at += 4 * LANES)
            NAME(columns)(out + at, factors, rows + at, Y, P, 4, 2);
        if (at + 2 * LANES < end)
            NAME(columns)(out + at, factors, rows + at, Y, P, 3, 2);
        else if (at + LANES < end)
            NAME(columns)(out + at, factors, rows + at, Y, P, 2, 2);
        else if (at < end)
            NAME(columns)(out + at, factors, rows + at, Y, P, 1, 2);
        at = end;
    }
#endif
}

/* `height` rows of `count` vectors of sums += left^T right, [T, P] both, held in registers. */
static FORCE_INLINE TARGET void NAME(outer_block)(
    double *sums, const double *left, const double *right, ptrdiff_t T, ptrdiff_t P, const int height, const int count)
{
    lanes held[16];
    for (int i = 0; i < height; i++)
        for (int k = 0; k < count; k++)
            held[i * count + k] = CONST_AT(sums + i * P, k);
    for (ptrdiff_t t = 0; t < T; t++)
        for (int i = 0; i < height; i++)
            for (int k = 0; k < count; k++)
                held[i * count + k] = FUSED(SPREAD(left[t * P + i]), CONST_AT(right + t * P, k), held[i * count + k]);
    for (int i = 0; i < height; i++)
        for (int k = 0; k < count; k++)
            AT(sums + i * P, k) = held[i * count + k];
}

static FORCE_INLINE TARGET void NAME(outer_rows)(
    double *sums, const double *left, const double *right, ptrdiff_t T, ptrdiff_t Y, ptrdiff_t P, const int height)
{
    ptrdiff_t vectors = (Y + LANES - 1) / LANES, at = 0;
#if LANES == 8 /* with 32 registers */
    for (; vectors >= 4; vectors -= 4, at += 4 * LANES)
        NAME(outer_block)(sums + at, left, right + at, T, P, height, 4);
#endif
    for (; vectors >= 2; vectors -= 2, at += 2 * LANES)
        NAME(outer_block)(sums + at, left, right + at, T, P, height, 2);
    if (vectors)
        NAME(outer_block)(sums + at, left, right + at, T, P, height, 1);
}

/* sums [P, P] += left^T right, [T, P] both, in its first Y rows. */
static NEVER_INLINE TARGET void NAME(outer)(
    double *sums, const double *left, const double *right, ptrdiff_t T, ptrdiff_t Y, ptrdiff_t P)
{
    ptrdiff_t i = 0;
    for (; i + 4 <= Y; i += 4)
        NAME(outer_rows)(sums + i * P, left + i, right, T, Y, P, 4);
    if (i + 2 <= Y) {
        NAME(outer_rows)(sums + i * P, left + i, right, T, Y, P, 2);
        i += 2;
    }
    if (i < Y)
        NAME(outer_rows)(sums + i * P, left + i, right, T, Y, P, 1);
}

/* psi [T, P] = exp(scores - shift) row by row; returns z plus the shifts, in their order. */
static NEVER_INLINE TARGET double NAME(potentials)(
    const void *scores, int single, ptrdiff_t T, ptrdiff_t Y, ptrdiff_t P, double *psi, double z)
{
    if (single)
        for (ptrdiff_t t = 0; t < T; t++)
            z += NAME(exponentials)((const float *)scores + t * Y, 1, Y, psi + t * P, 1);
    else
        for (ptrdiff_t t = 0; t < T; t++)
            z += NAME(exponentials)((const double *)scores + t * Y, 0, Y, psi + t * P, 1);
    return z;
}

/* The least of values [rows, stride] and 1, `width` of each row; zeros count unless they are `impossible`. */
static FORCE_INLINE TARGET double NAME(least)(
    const double *values, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t stride, const int impossible)
{
    double least = 1.0;
    for (ptrdiff_t t = 0; t < rows; t++)
        for (ptrdiff_t j = 0; j < width; j++) {
            const double value = values[t * stride + j];
            least = value < least && !(impossible && value <= 0.0) ? value : least;
        }
    return least;
}

/* Whether the least entries of psi and of the forward messages [T, stride] leave all terms far from underflow. Without
   forbidden transitions every entry has its share of all of the row before, which sums to LEAST_KEPT at least.

   kcrf_lossless alone would do: passes over sequences of 400 and of 2,000 random positions took 1.2 to 1.6 times as long
   with it (2, 9 and 23 labels, processor time of one ARM core). */
static NEVER_INLINE TARGET int NAME(nothing_small)(
    double least_psi, const double *alpha, ptrdiff_t T, ptrdiff_t Y, ptrdiff_t stride, const struct kcrf_shared *shared)
{
    double least_edge = exp(-shared->edge_depth);
    if (!(exp(-shared->start_depth) * least_psi * least_psi * least_edge >= LEAST_TERM))
        return 0;
    double least_alpha = shared->forbidden ? NAME(least)(alpha, T, Y, stride, 1) : LEAST_KEPT * least_edge * least_psi;
    return least_alpha * least_edge * least_psi >= LEAST_TERM;
}

/* One sequence. Zero where scaling cannot be trusted: then nothing has been added to `sums`. */
static NEVER_INLINE TARGET int NAME(sequence)(
    const void *scores, int single, ptrdiff_t T, ptrdiff_t Y, double weight, const struct kcrf_shared *shared,
    double *rows, void *node, double *log_z)
{
    const ptrdiff_t P = shared->stride;
    double *alpha = rows, *psi = rows + T * P, *back = psi + T * P; /* [T, P], [T, P], [P] */
    double z = shared->start_shift + shared->end_shift + (double)(T - 1) * shared->edge_shift;
    z = NAME(potentials)(scores, single, T, Y, P, psi, z);
    if (!isfinite(z))
        return 0;

    log_z[0] = 0.0; /* the sum of the logarithms of scales, which costs the loop no register here */
    for (ptrdiff_t t = 0; t < T; t++) {
        double *now = alpha + t * P;
        lanes total[PARTS];
        UNROLL for (int part = 0; part < PARTS; part++)
            total[part] = SPREAD(0.0);
        if (t > 0)
            NAME(product)(now, now - P, shared->forward, Y, P);
        const double *before = t > 0 ? now : shared->start;
        EACH_VECTOR(Y, {
            lanes x = CONST_AT(before + at, 0) * CONST_AT(psi + t * P + at, 0);
            AT(now + at, 0) = x;
            total[part] += x;
        });
        double scale = NAME(sum)(total);
        if (!(scale >= LEAST_KEPT && scale <= MOST_KEPT)) {
            if (!(scale >= LEAST_TRUSTED))
                return 0;
            double size = log(scale);
            z += size;
            log_z[0] += size;
            scale = 1.0 / scale;
            for (ptrdiff_t at = 0; at < Y; at += LANES)
                AT(now + at, 0) *= scale;
        }
    }

    for (ptrdiff_t at = 0; at < Y; at += LANES)
        AT(back + at, 0) = CONST_AT(shared->end + at, 0);
    for (ptrdiff_t t = T - 1;; t--) {
        const double *now = alpha + t * P;
        double *next = psi + (t + 1) * P;
        lanes sum[PARTS], size_of_back[PARTS];
        UNROLL for (int part = 0; part < PARTS; part++)
            sum[part] = size_of_back[part] = SPREAD(0.0);
        EACH_VECTOR(Y, {
            sum[part] = FUSED(CONST_AT(now + at, 0), CONST_AT(back + at, 0), sum[part]);
            size_of_back[part] += CONST_AT(back + at, 0);
        });
        double total = NAME(sum)(sum);
        if (!(total >= LEAST_PRODUCT))
            return 0;
        if (t == T - 1) {
            double size = log(total), scales = log_z[0];
            log_z[0] = z + size;
            if (!kcrf_outweighs(scales + size, T, shared->log_labels)
                && !NAME(nothing_small)(NAME(least)(psi, T, Y, P, 0), alpha, T, Y, P, shared)
                && !kcrf_lossless(
                    scores, single, T, Y, alpha, Y, P, shared->start_depth, 0, 0, 0, shared->edge_depth, 0.0))
                return 0;
        }
        double scale = 1.0 / total;
        for (ptrdiff_t at = 0; at < Y; at += LANES)
            NAME(store)(node, single, t * Y + at, Y - at, CONST_AT(now + at, 0) * CONST_AT(back + at, 0) * scale);
        if (t < T - 1)
            for (ptrdiff_t at = 0; at < Y; at += LANES)
                AT(next + at, 0) *= weight * scale;
        if (t == 0)
            break;
        double length = NAME(sum)(size_of_back);
        scale = 1.0;
        if (!(length >= LEAST_KEPT && length <= MOST_KEPT)) {
            if (!(length >= LEAST_TRUSTED))
                return 0;
            scale = 1.0 / length;
        }
        for (ptrdiff_t at = 0; at < Y; at += LANES)
            AT(psi + t * P + at, 0) *= CONST_AT(back + at, 0) * scale;
        NAME(product)(back, psi + t * P, shared->backward, Y, P);
    }
    NAME(outer)(shared->sums, alpha, psi + P, T - 1, Y, P);
    return 1;
}

/* The same with two labels, where a sequence is a few numbers per position and vectors run along it: `sequence` took 1.7
   to 1.9 times as long (8,000 random positions in sequences of 20 to 2,000, processor time of one ARM core). */
static FORCE_INLINE TARGET int NAME(two_labels)(
    const void *scores, int single, ptrdiff_t T, double weight, const struct kcrf_shared *shared, double *rows,
    void *node, double *log_z)
{
    const ptrdiff_t P = shared->stride, R = (T + 7) / 8 * 8;
    double *difference = rows, *lesser = rows + R, *alpha = rows + 2 * R; /* [R], [R], [T, 2] */
    const double E00 = shared->forward[0], E01 = shared->forward[1];
    const double E10 = shared->forward[P], E11 = shared->forward[P + 1];
    double z = shared->start_shift + shared->end_shift + (double)(T - 1) * shared->edge_shift;
    double a0 = 0.0, a1 = 0.0, b0, b1;
    for (ptrdiff_t t = 0; t < T; t++) {
        double s0 = single ? ((const float *)scores)[2 * t] : ((const double *)scores)[2 * t];
        double s1 = single ? ((const float *)scores)[2 * t + 1] : ((const double *)scores)[2 * t + 1];
        z += s0 > s1 ? s0 : s1;
        difference[t] = s0 - s1;
        lesser[t] = -fabs(s0 - s1);
    }
    if (!isfinite(z))
        return 0;
    for (ptrdiff_t t = T; t < R; t++)
        lesser[t] = 0.0;
    for (ptrdiff_t at = 0; at < R; at += LANES)
        AT(lesser + at, 0) = NAME(exp)(CONST_AT(lesser + at, 0));

    log_z[0] = 0.0;
    for (ptrdiff_t t = 0; t < T; t++) {
        double f0 = t > 0 ? a0 * E00 + a1 * E10 : shared->start[0];
        double f1 = t > 0 ? a0 * E01 + a1 * E11 : shared->start[1];
        a0 = f0 * (difference[t] < 0.0 ? lesser[t] : 1.0);
        a1 = f1 * (difference[t] < 0.0 ? 1.0 : lesser[t]);
        double total = a0 + a1;
        if (!(total >= LEAST_KEPT && total <= MOST_KEPT)) {
            if (!(total >= LEAST_TRUSTED))
                return 0;
            double size = log(total);
            z += size;
            log_z[0] += size;
            a0 /= total;
            a1 /= total;
        }
        alpha[2 * t] = a0;
        alpha[2 * t + 1] = a1;
    }

    double s00 = 0.0, s01 = 0.0, s10 = 0.0, s11 = 0.0, g0 = 0.0, g1 = 0.0;
    b0 = shared->end[0];
    b1 = shared->end[1];
    double last = a0 * b0 + a1 * b1;
    if (!(last >= LEAST_PRODUCT))
        return 0;
    last = log(last);
    double scales = log_z[0];
    log_z[0] = z + last;
    if (!kcrf_outweighs(scales + last, T, shared->log_labels)
        && !NAME(nothing_small)(NAME(least)(lesser, 1, R, R, 0), alpha, T, 2, 2, shared)
        && !kcrf_lossless(scores, single, T, 2, alpha, 2, 2, shared->start_depth, 0, 0, 0, shared->edge_depth, 0.0))
        return 0;
    for (ptrdiff_t t = T - 1;; t--) {
        a0 = alpha[2 * t];
        a1 = alpha[2 * t + 1];
        double total = a0 * b0 + a1 * b1;
        if (!(total >= LEAST_PRODUCT))
            return 0;
        double scale = 1.0 / total, left0 = a0 * scale, left1 = a1 * scale;
        if (single) {
            ((float *)node)[2 * t] = (float)(left0 * b0);
            ((float *)node)[2 * t + 1] = (float)(left1 * b1);
        } else {
            ((double *)node)[2 * t] = left0 * b0;
            ((double *)node)[2 * t + 1] = left1 * b1;
        }
        s00 += left0 * g0;
        s01 += left0 * g1;
        s10 += left1 * g0;
        s11 += left1 * g1;
        if (t == 0)
            break;
        if (!(b0 + b1 >= LEAST_KEPT && b0 + b1 <= MOST_KEPT)) {
            if (!(b0 + b1 >= LEAST_TRUSTED))
                return 0;
            scale = 1.0 / (b0 + b1);
            b0 *= scale;
            b1 *= scale;
        }
        g0 = b0 * (difference[t] < 0.0 ? lesser[t] : 1.0);
        g1 = b1 * (difference[t] < 0.0 ? 1.0 : lesser[t]);
        b0 = E00 * g0 + E01 * g1;
        b1 = E10 * g0 + E11 * g1;
    }
    shared->sums[0] += weight * s00;
    shared->sums[1] += weight * s01;
    shared->sums[P] += weight * s10;
    shared->sums[P + 1] += weight * s11;
    return 1;
}

static NEVER_INLINE TARGET int NAME(sequence_any)(
    const void *scores, int single, ptrdiff_t T, ptrdiff_t Y, double weight, const struct kcrf_shared *shared,
    double *rows, void *node, double *log_z)
{
    if (Y == 2)
        return single ? NAME(two_labels)(scores, 1, T, weight, shared, rows, node, log_z)
                      : NAME(two_labels)(scores, 0, T, weight, shared, rows, node, log_z);
    return NAME(sequence)(scores, single, T, Y, weight, shared, rows, node, log_z);
}

static NEVER_INLINE TARGET double NAME(exponentials_any)(const void *values, int single, ptrdiff_t Y, double *out)
{
    return single ? NAME(exponentials)(values, 1, Y, out, 0) : NAME(exponentials)(values, 0, Y, out, 0);
}

END_MAY_FUSE

/* The step of Viterbi. Which i it was is left to those who walk back: they want it for one j of a step only. */
static TARGET void NAME(max_plus)(
    const double *restrict before, const double *restrict E, ptrdiff_t n, ptrdiff_t width, double *restrict now)
{
    for (ptrdiff_t j = 0; j < width; j++)
        now[j] = -INFINITY;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = before[i];
        const double *restrict row = E + i * width;
        for (ptrdiff_t j = 0; j < width; j++) {
            const double next = value + row[j];
            now[j] = next > now[j] ? next : now[j];
        }
    }
}

#undef lanes
#undef LANE
#undef AT
#undef CONST_AT
#undef PARTS
#undef FUSED
#undef SPREAD
#undef EACH_VECTOR
