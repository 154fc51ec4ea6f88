/* Damped dual steps (Shalev-Shwartz 2016) for a linear-chain CRF with a Gaussian prior: theta = -sigma^2 sum_i a_i.

   For each sequence the marginals p_i at theta are computed, and a_i <- a_i + gamma_i d_i with
   d_i = (p_i - e_y) - a_i and

       gamma_i = 1 / (1 + kappa sigma^2 rho_i),   rho_i = sum_t w_t^2 var_p(d_t) / sum_t w_t |d_t|^2,   w_t = |phi_t|^2

   `batch` sequences take their marginals at the same theta. Rows of marginals [N, Y] are kept, and sums over pairs of
   labels [S, Y, Y]. Everything is in single precision. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t columns;        /* D */
    const int64_t *ends;    /* [N+1] of rows */
    const int32_t *indices; /* sparse columns, or NULL */
    const float *scale;     /* [D] of sparse columns */
    const float *dense;     /* [N, D], or NULL */
    const int32_t *labels;  /* [N] */
    const int64_t *offsets; /* [S+1] */
    const float *squares;   /* [N] w */
    int labels_count;       /* Y */
    float variance, edge_variance;
    float *weights, *transitions, *start, *end; /* [D, Y], [Y, Y], [Y], [Y] */
    float *nodes, *pairs;                       /* a: [N, Y], [S, Y, Y] */
} Dual;

/* out += the scores of a position; or weights += factor times the outer product of phi and out. */
static void product(const Dual *m, int64_t t, float *restrict out, float factor)
{
    const int Y = m->labels_count;
    const int64_t first = m->dense ? 0 : m->ends[t], last = m->dense ? m->columns : m->ends[t + 1];
    for (int64_t k = first; k < last; k++) {
        const int64_t column = m->dense ? k : m->indices[k];
        const float value = m->dense ? m->dense[t * m->columns + k] : m->scale[column];
        float *restrict row = m->weights + column * Y;
        if (value == 0)
            continue;
        if (factor == 0)
            for (int y = 0; y < Y; y++) out[y] += value * row[y];
        else
            for (int y = 0; y < Y; y++) row[y] += factor * value * out[y];
    }
}

/* Marginals of a sequence: node [n, Y], and the sum of those of pairs [Y, Y]. `work` has 2 n Y + n + Y values. */
static void marginals(const Dual *m, int64_t at, int64_t n, const float *exponentials, float *work, float *node, float *pair)
{
    const int Y = m->labels_count;
    float *potential = work, *forward = work + n * Y, *inverse = work + 2 * n * Y, *back = inverse + n;
    for (int64_t t = 0; t < n; t++) {
        float *own = potential + t * Y, *alpha = forward + t * Y, largest = -INFINITY, sum = 0;
        for (int y = 0; y < Y; y++) own[y] = (t == 0 ? m->start[y] : 0) + (t == n - 1 ? m->end[y] : 0);
        product(m, at + t, own, 0);
        for (int y = 0; y < Y; y++) largest = own[y] > largest ? own[y] : largest;
        for (int y = 0; y < Y; y++) own[y] = expf(own[y] - largest), alpha[y] = t == 0;
        for (int x = 0; t && x < Y; x++)
            for (int y = 0; y < Y; y++) alpha[y] += alpha[x - Y] * exponentials[x * Y + y];
        for (int y = 0; y < Y; y++) alpha[y] *= own[y], sum += alpha[y];
        inverse[t] = 1 / sum;
        for (int y = 0; y < Y; y++) alpha[y] *= inverse[t];
    }
    memset(pair, 0, sizeof(float) * Y * Y);
    for (int y = 0; y < Y; y++) node[(n - 1) * Y + y] = 1;
    for (int64_t t = n - 1; t >= 0; t--) {
        float *beta = node + t * Y, *alpha = forward + t * Y;
        for (int y = 0; y < Y; y++) back[y] = potential[t * Y + y] * beta[y] * inverse[t];
        for (int x = 0; t && x < Y; x++) {
            float sum = 0;
            for (int y = 0; y < Y; y++) {
                sum += exponentials[x * Y + y] * back[y];
                pair[x * Y + y] += alpha[x - Y] * back[y];
            }
            beta[x - Y] = sum;
        }
        for (int y = 0; y < Y; y++) beta[y] *= alpha[y];
    }
    for (int k = 0; k < Y * Y; k++) pair[k] *= exponentials[k];
}

void dual_steps(const Dual *m, const int64_t *order, int64_t count, int batch, float kappa)
{
    const int Y = m->labels_count;
    int64_t longest = 0;
    for (int64_t j = 0; j < count; j++) {
        int64_t n = m->offsets[order[j] + 1] - m->offsets[order[j]];
        longest = n > longest ? n : longest;
    }
    float *work = malloc(sizeof(float) * (longest * (2 * Y + 1) + Y)), *exponentials = malloc(sizeof(float) * Y * Y);
    float *nodes = malloc(sizeof(float) * batch * longest * Y), *pairs = malloc(sizeof(float) * batch * Y * Y);
    for (int64_t first = 0; first < count; first += batch) {
        const int64_t some = count - first < batch ? count - first : batch;
        for (int k = 0; k < Y * Y; k++) exponentials[k] = expf(m->transitions[k]);
        for (int64_t b = 0; b < some; b++) { /* independent of each other */
            const int64_t i = order[first + b], at = m->offsets[i], n = m->offsets[i + 1] - at;
            float *node = nodes + b * longest * Y, *pair = pairs + b * Y * Y, *held = m->pairs + i * Y * Y;
            double spread = 0, length = 1e-30;
            marginals(m, at, n, exponentials, work, node, pair);
            for (int64_t t = 0; t < n; t++) {
                float mean = 0, square = 0, norm = 0, w = m->squares[at + t] + 2 * m->edge_variance / m->variance;
                for (int y = 0; y < Y; y++) {
                    const float p = node[t * Y + y], d = p - (y == m->labels[at + t]) - m->nodes[(at + t) * Y + y];
                    mean += p * d, square += p * d * d, norm += d * d, node[t * Y + y] = d;
                }
                spread += w * w * (square - mean * mean), length += w * norm;
                if (t)
                    pair[m->labels[at + t - 1] * Y + m->labels[at + t]] -= 1;
            }
            const float gamma = 1 / (1 + kappa * m->variance * (float)(spread / length));
            for (int64_t k = 0; k < n * Y; k++) node[k] *= gamma;
            for (int k = 0; k < Y * Y; k++) pair[k] = gamma * (pair[k] - held[k]);
        }
        for (int64_t b = 0; b < some; b++) {
            const int64_t i = order[first + b], at = m->offsets[i], n = m->offsets[i + 1] - at;
            float *node = nodes + b * longest * Y, *pair = pairs + b * Y * Y;
            for (int64_t k = 0; k < n * Y; k++) m->nodes[at * Y + k] += node[k];
            for (int64_t t = 0; t < n; t++) product(m, at + t, node + t * Y, -m->variance);
            for (int k = 0; k < Y * Y; k++) {
                m->pairs[i * Y * Y + k] += pair[k];
                m->transitions[k] -= m->edge_variance * pair[k];
            }
            for (int y = 0; y < Y; y++) {
                m->start[y] -= m->edge_variance * node[y];
                m->end[y] -= m->edge_variance * node[(n - 1) * Y + y];
            }
        }
    }
    free(work), free(exponentials), free(nodes), free(pairs);
}
