/* kcrf-tag: labels lines of columns, or of attributes, with a model that `kcrf export --to runtime` wrote.

   Input is cut into blocks of whole sequences. Each is read and written by the main thread and labelled by any thread,
   in a ring of jobs; whatever is complete is written before more input is waited for. */

#define _POSIX_C_SOURCE 200809L

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef READ_SIZE
#define READ_SIZE ((size_t)1 << 16) /* what a block takes stays in the cache of its thread */
#endif
#define MOST_THREADS 256
enum { USAGE = 2, DATA = 3, SYSTEM = 1 };
enum marginals { NO_MARGINALS, OF_BEST, OF_ALL };

static const char HELP[] =
    "Usage: kcrf-tag [OPTIONS] MODEL [INPUT]\n\n"
    "Label the sequences of INPUT (default: stdin) with MODEL, a file that `kcrf export --to runtime` wrote. Every line\n"
    "is copied to stdout, with the predicted label as a new last column, as `kcrf tag` does.\n\n"
    "  -t, --threads N          threads that label; default: 1\n"
    "      --marginals best|all add columns LABEL:p with the probability of the label, or of all labels\n"
    "      --help               print this and exit\n\n"
    "Example:\n"
    "  kcrf export model.npz --to runtime -o model.kcrf\n"
    "  kcrf-tag model.kcrf < new.conll > tagged.conll\n";

struct buffer {
    char *data;
    size_t size, room;
};

struct job {
    struct buffer in, out;
    size_t lines; /* of the block */
    enum state { FREE, READY, TAKEN, DONE } state; /* changed by the owner of the program's lock alone */
    int status;
    size_t bad_line; /* of the block, from 1; 0: the message is about no line */
    char message[400];
};

/* Form of the file, which the first row determines. */
struct form {
    const char *name;
    char separator;
    bool attributes;
    uint32_t width;
    int32_t *places; /* [columns of the model] columns of the file, -1 for unused ones that it lacks */
};

struct program {
    kcrf_model *model;
    struct form form;
    enum marginals marginals;
    int threads;
    struct job *jobs, *awaited; /* the job whose end the main thread waits for */
    size_t ring, next; /* the next job that a thread takes */
    size_t lines;      /* before the next job that is written */
    bool ended;
    pthread_mutex_t lock;
    pthread_cond_t ready, done;
};

struct worker {
    struct program *program;
    kcrf_tagger *tagger;
    struct buffer cells, ends, attributes, counts, row;
};

static int fail(struct job *job, int status, size_t line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(job->message, sizeof job->message, format, arguments);
    va_end(arguments);
    job->bad_line = line;
    return job->status = status;
}

static void *room_for(struct buffer *buffer, size_t size)
{
    if (size > buffer->room) {
        size_t room = size + SPARE(size);
        char *data = realloc(buffer->data, room);
        if (!data) {
            fputs("kcrf-tag: out of memory\n", stderr);
            _exit(SYSTEM);
        }
        buffer->data = data;
        buffer->room = room;
    }
    return buffer->data;
}

static void append(struct buffer *buffer, const char *text, size_t size)
{
    if (size) /* else there may be no memory yet */
        memcpy((char *)room_for(buffer, buffer->size + size) + buffer->size, text, size);
    buffer->size += size;
}

/* ---------------------------------------------------------------------------------------------------- text */

static size_t lines_before(const char *data, size_t at)
{
    size_t lines = 0;
    for (size_t k = 0; k < at; k++)
        lines += data[k] == '\n';
    return lines;
}

/* Place of the first byte that is not UTF-8, or `size`. */
static size_t bad_text(const uint8_t *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        uint64_t word;
        if (at + 8 <= size && (memcpy(&word, text + at, 8), !(word & 0x8080808080808080ull))) {
            at += 8;
            continue;
        }
        uint8_t c = text[at];
        size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : 9;
        if (more == 9 || at + more >= size + (more == 0))
            return at;
        for (size_t k = 1; k <= more; k++)
            if ((text[at + k] & 0xC0) != 0x80)
                return at;
        if ((c == 0xE0 && text[at + 1] < 0xA0) || (c == 0xED && text[at + 1] >= 0xA0) || (c == 0xF0 && text[at + 1] < 0x90) ||
            (c == 0xF4 && text[at + 1] >= 0x90))
            return at;
        at += more + 1;
    }
    return size;
}

static int check_text(struct job *job)
{
    const char *data = job->in.data, *found;
    size_t size = job->in.size, bad = bad_text((const uint8_t *)data, size);
    if (bad < size)
        return fail(job, DATA, 1 + lines_before(data, bad),
                    "byte 0x%02x is not UTF-8 (convert the file, for example with iconv)", (unsigned)(uint8_t)data[bad]);
    if ((found = memchr(data, 0, size)))
        return fail(job, DATA, 1 + lines_before(data, (size_t)(found - data)),
                    "a NUL character (if the file is UTF-16, convert it, for example with iconv)");
    for (const char *at = data; (found = memchr(at, '\r', size - (size_t)(at - data))); at = found + 1)
        if (found + 1 < data + size && found[1] != '\n')
            return fail(job, DATA, 1 + lines_before(data, (size_t)(found - data)),
                        "a carriage return inside a line (if they end the lines, convert with tr '\\r' '\\n')");
    return KCRF_OK;
}

static bool starts_with(const char *line, size_t size, const char *mark, size_t length)
{
    return size >= length && memcmp(line, mark, length) == 0;
}

/* True if a line has nothing but spaces, TABs and separators, or weighs a sequence, which ends one as well. */
static bool is_blank(const struct form *form, const char *line, size_t size)
{
    size_t at = 0;
    while (at < size && (line[at] == ' ' || line[at] == '\t' || line[at] == form->separator))
        at++;
    if (at == size)
        return true;
    return form->attributes && starts_with(line, size, "@weight", 7)
           && (size == 7 || line[7] == ':' || line[7] == '\t');
}

static bool is_comment(const kcrf_model *model, const char *line, size_t size)
{
    for (uint32_t k = 0; k < model->meta->comments; k++) {
        kcrf_text mark = kcrf_comment(model, k);
        if (starts_with(line, size, mark.text, mark.size))
            return true;
    }
    return false;
}

/* Split a row; the number of its values, of which the first `room` are stored. */
static size_t split(char separator, const char *line, size_t size, kcrf_text *out, size_t room)
{
    size_t columns = 0, at = 0, begin;
    if (separator == ' ') {
        while (size && line[size - 1] == ' ')
            size--;
        while (at < size && line[at] == ' ')
            at++;
    }
    for (;;) {
        begin = at;
        while (at < size && line[at] != separator)
            at++;
        if (columns < room) {
            out[columns].text = line + begin;
            out[columns].size = at - begin;
        }
        columns++;
        if (at++ >= size)
            return columns;
        while (separator == ' ' && line[at] == ' ')
            at++;
    }
}

/* Find columns of the model in a file: all of them, or those in use, each with or without the label. */
static int set_form(struct program *program, struct job *job, const char *line, size_t size, size_t number, bool header)
{
    struct form *form = &program->form;
    const kcrf_model *model = program->model;
    uint32_t columns = model->meta->columns, used = 0, there = 0;
    form->separator = (char)model->meta->separator;
    if (!form->separator)
        form->separator = form->attributes || memchr(line, '\t', size) ? '\t' : ' ';
    if (form->attributes)
        return KCRF_OK;
    kcrf_text *names = malloc((size + 1) * sizeof *names);
    form->places = malloc((columns + 1) * sizeof *form->places);
    if (!names || !form->places)
        return fail(job, SYSTEM, 0, "out of memory");
    form->width = (uint32_t)split(form->separator, line, size, names, size + 1);
    for (uint32_t c = 0; c < columns; c++)
        used += kcrf_column_used(model, c) != 0;
    bool all = form->width == columns || form->width == columns + 1;
    bool good = all || form->width == used || form->width == used + 1;
    for (uint32_t c = 0; c < columns && good; c++) {
        kcrf_text own = kcrf_column_name(model, c);
        bool named = there < form->width && own.size == names[there].size && !memcmp(own.text, names[there].text, own.size);
        bool taken = header ? named : all || kcrf_column_used(model, c);
        good = taken || !kcrf_column_used(model, c);
        form->places[c] = taken ? (int32_t)there : -1;
        there += taken;
    }
    free(names);
    if (good && header && form->width > there + 1)
        good = false;
    if (!good && header)
        return fail(job, DATA, number, "the first line should be the header of the training data, with or without the label");
    if (!good)
        return fail(job, DATA, number, "%u column%s, expected %u with labels or %u without", form->width,
                    form->width == 1 ? "" : "s", columns + 1, columns);
    return KCRF_OK;
}

/* ---------------------------------------------------------------------------------------------------- sequences */

static int parse_attributes(struct worker *worker, struct job *job, char *text, size_t size, size_t *count, size_t line)
{
    for (size_t at = 0; at < size; at++) {
        size_t begin = at, colon = SIZE_MAX, out = at;
        double value = 1.0;
        for (; at < size && text[at] != '\t'; at++) {
            if (text[at] == ':')
                colon = out;
            else if (text[at] == '\\' && at + 1 < size && (text[at + 1] == '\\' || text[at + 1] == ':'))
                at++;
            text[out++] = text[at];
        }
        if (out == begin)
            continue;
        if (colon == begin)
            return fail(job, DATA, line, "an attribute has no name (a colon is written \\:)");
        if (colon != SIZE_MAX) {
            if (!kcrf_number(text + colon + 1, out - colon - 1, &value))
                return fail(job, DATA, line, "the weight of attribute '%.*s' is not a finite number (a colon inside a name is written \\:)",
                            (int)(out - begin < 100 ? out - begin : 100), text + begin);
            out = colon;
        }
        kcrf_attribute *all = room_for(&worker->attributes, (*count + 1) * sizeof *all);
        all[*count].name.text = text + begin;
        all[*count].name.size = out - begin;
        all[(*count)++].value = value;
    }
    return KCRF_OK;
}

static void put_probability(struct worker *worker, struct buffer *out, size_t label, double p)
{
    char text[32];
    kcrf_text name = kcrf_label_name(worker->program->model, label);
    append(out, &worker->program->form.separator, 1);
    append(out, name.text, name.size);
    append(out, text, (size_t)snprintf(text, sizeof text, ":%.6f", p));
}

/* Label the rows of a sequence, and copy the block up to the end of the last one. */
static int label_sequence(struct worker *worker, struct job *job, size_t T, size_t first_line, size_t *copied)
{
    struct program *program = worker->program;
    const kcrf_model *model = program->model;
    const size_t *ends = (const size_t *)worker->ends.data;
    size_t Y = kcrf_label_count(model);
    int status = program->form.attributes
                     ? kcrf_set_attributes(worker->tagger, (kcrf_attribute *)worker->attributes.data, (size_t *)worker->counts.data, T)
                     : kcrf_set_columns(worker->tagger, (kcrf_text *)worker->cells.data, T);
    const double *p = NULL;
    const int32_t *labels = status ? NULL : kcrf_labels(worker->tagger);
    if (labels && program->marginals) {
        size_t bytes = T * sizeof *labels;
        labels = memcpy(room_for(&worker->row, bytes), labels, bytes); /* the room of a tagger is used again */
        p = kcrf_marginals(worker->tagger);
    }
    if (!labels || (program->marginals && !p))
        return fail(job, DATA, first_line, "%s", kcrf_tagger_error(worker->tagger)->text);
    const size_t *label_ends = program->form.attributes ? (const size_t *)worker->cells.data : ends;
    for (size_t t = 0; t < T; t++) {
        kcrf_text name = kcrf_label_name(model, (size_t)labels[t]);
        append(&job->out, job->in.data + *copied, label_ends[t] - *copied);
        for (size_t y = 0; y < Y && p; y++)
            if (program->marginals == OF_ALL || y == (size_t)labels[t])
                put_probability(worker, &job->out, y, p[t * Y + y]);
        char *to = (char *)room_for(&job->out, job->out.size + name.size + 1) + job->out.size;
        *to = program->form.separator;
        memcpy(to + 1, name.text, name.size);
        job->out.size += name.size + 1;
        *copied = ends[t];
    }
    return KCRF_OK;
}

/* Label a block: `begin` is the place of its first row, behind a byte order mark and a header. */
static int label_block(struct worker *worker, struct job *job, size_t begin, size_t line)
{
    struct program *program = worker->program;
    const struct form *form = &program->form;
    const kcrf_model *model = program->model;
    uint32_t columns = model->meta->columns, width = form->width;
    const char *data = job->in.data;
    struct buffer copy = {0};
    size_t size = job->in.size, T = 0, first_line = line, copied = 0, count = 0;
    if ((job->status = check_text(job)))
        return job->status;
    char *own = NULL; /* names of attributes lose their backslashes in a copy */
    if (form->attributes)
        own = memcpy(room_for(&copy, size + 1), data, size);
    bool tabs = form->separator == ' ' && memchr(data, '\t', size);
    while (begin < size && !job->status) {
        kcrf_text *row = room_for(&worker->row, (width + 1) * sizeof *row); /* labelling uses its room too */
        const char *line_end = memchr(data + begin, '\n', size - begin);
        size_t stop = line_end ? (size_t)(line_end - data) : size, end = stop;
        if (end > begin && data[end - 1] == '\r')
            end--;
        if (is_blank(form, data + begin, end - begin)) {
            if (T)
                label_sequence(worker, job, T, first_line, &copied);
            if (form->attributes && data[begin] == '@' && !job->status) { /* an empty line takes the place of a weight */
                append(&job->out, data + copied, begin - copied);
                copied = end;
            }
            T = count = 0;
        } else if (form->attributes || !is_comment(model, data + begin, end - begin)) {
            size_t *ends = room_for(&worker->ends, (T + 1) * sizeof *ends);
            ends[T] = end;
            if (T == 0)
                first_line = line;
            if (form->attributes) {
                size_t *labels = room_for(&worker->cells, (T + 1) * sizeof *labels);
                size_t *counts = room_for(&worker->counts, (T + 1) * sizeof *counts);
                const char *tab = memchr(data + begin, '\t', end - begin);
                labels[T] = tab ? (size_t)(tab - data) : end;
                if (labels[T] == begin)
                    fail(job, DATA, line, "no label before the first TAB (write any known label if there is none)");
                else if (!tab && memchr(data + begin, ' ', end - begin))
                    fail(job, DATA, line, "spaces but no TAB (attribute files are tab-separated)");
                else if (tab)
                    parse_attributes(worker, job, own + labels[T] + 1, end - labels[T] - 1, &count, line);
                counts[T] = count;
            } else {
                kcrf_text *cells = (kcrf_text *)room_for(&worker->cells, (T + 1) * columns * sizeof *cells + 1) + T * columns;
                size_t values = split(form->separator, data + begin, end - begin, row, width);
                bool spaces = form->separator == '\t' && values == 1 && memchr(data + begin, ' ', end - begin);
                if (values != width && spaces)
                    fail(job, DATA, line, "1 column, expected %u (tab-separated, and the line has spaces and no TAB)", width);
                else if (values != width)
                    fail(job, DATA, line, "%zu column%s, expected %u (is a value missing?)", values, values == 1 ? "" : "s", width);
                else if (tabs && memchr(data + begin, '\t', end - begin))
                    fail(job, DATA, line, "a TAB inside a value (space-separated, as the first data line has no TAB)");
                for (uint32_t c = 0; c < columns; c++) {
                    kcrf_text nothing = {"", 0};
                    cells[c] = form->places[c] < 0 ? nothing : row[form->places[c]];
                }
            }
            T++;
        }
        begin = stop + 1;
        line++;
    }
    if (T && !job->status)
        label_sequence(worker, job, T, first_line, &copied);
    if (!job->status)
        append(&job->out, data + copied, size - copied);
    job->lines = line - 1;
    free(copy.data);
    return job->status;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct program *program = worker->program;
    pthread_mutex_lock(&program->lock);
    for (;;) {
        struct job *job = program->jobs + program->next % program->ring;
        if (job->state == READY) {
            program->next++;
            job->state = TAKEN;
            pthread_mutex_unlock(&program->lock);
            label_block(worker, job, 0, 1);
            pthread_mutex_lock(&program->lock);
            job->state = DONE;
            if (job == program->awaited)
                pthread_cond_signal(&program->done);
        } else if (program->ended)
            break;
        else
            pthread_cond_wait(&program->ready, &program->lock);
    }
    pthread_mutex_unlock(&program->lock);
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------- files */

/* True if stdout is a file that is read at the same time: it would grow without end, or lose the model. */
static bool writes_input(int input, const char *model)
{
    struct stat output, read;
    if (fstat(1, &output) || !S_ISREG(output.st_mode))
        return false;
    bool same = fstat(input, &read) == 0 && read.st_dev == output.st_dev && read.st_ino == output.st_ino;
    return same || (stat(model, &read) == 0 && read.st_dev == output.st_dev && read.st_ino == output.st_ino);
}

static void set_state(struct program *program, struct job *job, enum state state)
{
    pthread_mutex_lock(&program->lock);
    job->state = state;
    program->next += state == DONE; /* by the main thread: no other one takes it */
    if (state == READY)
        pthread_cond_signal(&program->ready);
    pthread_mutex_unlock(&program->lock);
}

static int write_job(struct program *program, struct job *job)
{
    if (job->status) {
        char line[32] = "";
        if (job->bad_line)
            snprintf(line, sizeof line, ":%zu", program->lines + job->bad_line);
        fprintf(stderr, "kcrf-tag: %s%s: %s\n", program->form.name, line, job->message);
        return job->status;
    }
    for (size_t at = 0; at < job->out.size;) {
        ssize_t written = write(1, job->out.data + at, job->out.size - at);
        if (written < 0 && errno != EINTR) {
            if (errno != EPIPE)
                perror("kcrf-tag: output");
            return SYSTEM;
        }
        at += written > 0 ? (size_t)written : 0;
    }
    program->lines += job->lines;
    job->in.size = job->out.size = 0;
    set_state(program, job, FREE);
    return KCRF_OK;
}

/* Place behind the last blank line, or 0. */
static size_t last_end(const struct form *form, const char *data, size_t size, size_t searched)
{
    for (size_t end = size; end > searched; end--) {
        if (data[end - 1] != '\n')
            continue;
        size_t begin = end - 1, last = end - 1;
        while (begin > 0 && data[begin - 1] != '\n')
            begin--;
        if (last > begin && data[last - 1] == '\r')
            last--;
        if (is_blank(form, data + begin, last - begin))
            return end;
        end = begin + 1;
    }
    return 0;
}

/* True if a column of a header has this name. */
static bool in_header(char separator, const char *line, size_t size, const char *name, size_t length)
{
    for (size_t at = 0, begin; at <= size; at++) {
        for (begin = at; at < size && line[at] != separator;)
            at++;
        if (at - begin == length && !memcmp(line + begin, name, length))
            return true;
    }
    return false;
}

/* Append the name of a new column to a header, with a number behind it where a column has that name. */
static void append_name(struct buffer *out, char separator, const char *line, size_t size, const char *begin,
                        kcrf_text name, const char *end)
{
    struct buffer text = {0};
    append(&text, begin, strlen(begin));
    append(&text, name.text, name.size);
    append(&text, end, strlen(end));
    size_t length = text.size;
    for (unsigned number = 2; in_header(separator, line, size, text.data, text.size); number++) {
        char digits[16];
        text.size = length;
        append(&text, digits, (size_t)snprintf(digits, sizeof digits, "_%u", number));
    }
    append(out, &separator, 1);
    append(out, text.data, text.size);
    free(text.data);
}

/* Append the names of the columns behind those of the input, as `kcrf tag` calls them. */
static void append_names(const struct program *program, struct buffer *out, const char *line, size_t size)
{
    char separator = program->form.separator;
    kcrf_text nothing = {"", 0};
    if (program->marginals == OF_BEST)
        append_name(out, separator, line, size, "marginal", nothing, "");
    for (size_t y = 0; program->marginals == OF_ALL && y < kcrf_label_count(program->model); y++)
        append_name(out, separator, line, size, "p(", kcrf_label_name(program->model, y), ")");
    append_name(out, separator, line, size, "predicted", nothing, "");
}

/* Begin a file: find its form by its first row. True if there is a row; *begin and *line are behind a header. */
static bool begin_file(struct program *program, struct job *job, size_t *begin, size_t *line)
{
    const struct form *form = &program->form;
    const char *data = job->in.data;
    size_t at = *begin, size = job->in.size;
    while (at < size && !job->status) {
        const char *found = memchr(data + at, '\n', size - at);
        size_t stop = found ? (size_t)(found - data) : size, end = stop;
        if (end > at && data[end - 1] == '\r')
            end--;
        bool row = !is_blank(form, data + at, end - at) && (form->attributes || !is_comment(program->model, data + at, end - at));
        bool header = row && program->model->meta->header && !form->attributes;
        if (row && set_form(program, job, data + at, end - at, *line, header))
            return false;
        if (row && !header)
            return true;
        if (header) {
            append(&job->out, data, end);
            append_names(program, &job->out, data + at, end - at);
            memmove(job->in.data, data + end, size - end);
            job->in.size = size - end;
            *begin = stop < size ? stop + 1 - end : job->in.size;
            ++*line;
            return true;
        }
        at = stop + 1;
        ++*line;
    }
    return false;
}

static int run(struct program *program, struct worker *workers, int input)
{
    struct buffer rest = {0}; /* the begin of the next block */
    struct form *form = &program->form;
    size_t put = 0, taken = 0, searched = 0;
    bool known = false, ended = false;
    int status = KCRF_OK;
    while (!status) {
        struct job *job = program->jobs + put % program->ring;
        bool wait = put - taken == program->ring || ended;
        if (!wait && put > taken) {
            struct pollfd ready = {input, POLLIN, 0};
            wait = poll(&ready, 1, 0) == 0;
        }
        if (wait && put == taken)
            break;
        if (wait) {
            job = program->jobs + taken % program->ring;
            pthread_mutex_lock(&program->lock);
            program->awaited = job;
            while (job->state != DONE)
                pthread_cond_wait(&program->done, &program->lock);
            pthread_mutex_unlock(&program->lock);
            status = write_job(program, job);
            taken++;
            continue;
        }
        struct buffer *in = &job->in;
        append(in, rest.data, rest.size);
        rest.size = 0;
        ssize_t count = read(input, (char *)room_for(in, in->size + READ_SIZE) + in->size, READ_SIZE);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return perror("kcrf-tag: input"), SYSTEM;
        ended = count == 0;
        in->size += (size_t)count;
        size_t end = ended ? in->size : last_end(form, in->data, in->size, searched);
        searched = end ? 0 : in->size - (in->size > 0); /* a line may go on */
        while (searched > 0 && in->data[searched - 1] != '\n')
            searched--;
        if (!end)
            continue;
        append(&rest, in->data + end, in->size - end);
        in->size = end;
        job->status = KCRF_OK;
        size_t begin = put == 0 && starts_with(in->data, end, "\xEF\xBB\xBF", 3) ? 3 : 0, line = 1;
        bool labelled = known;
        if (!known && !check_text(job)) {
            bool mark = begin > 0;
            labelled = known = begin_file(program, job, &begin, &line);
            if (labelled && (mark || program->model->meta->header)) { /* by this thread, as lines begin elsewhere */
                job->status = label_block(workers, job, begin, program->model->meta->header ? line : 1);
                labelled = false;
            } else if (!labelled && !job->status) {
                append(&job->out, in->data, in->size);
                job->lines = lines_before(in->data, in->size);
            }
        }
        bool here = !labelled || program->threads == 1;
        if (labelled && here && !job->status)
            label_block(workers, job, 0, 1);
        set_state(program, job, here || job->status ? DONE : READY);
        put++;
        if (program->threads == 1) {
            status = write_job(program, job);
            taken++;
        }
    }
    free(rest.data);
    return status;
}

static int usage(const char *message, const char *what)
{
    fprintf(stderr, "kcrf-tag: %s%s (try kcrf-tag --help)\n", message, what ? what : "");
    return USAGE;
}

int main(int count, char **arguments)
{
    struct program program = {.threads = 1};
    const char *paths[2] = {NULL, "-"};
    int given = 0, input = 0;
    bool options = true;
    for (int k = 1; k < count; k++) {
        const char *one = arguments[k], *value = k + 1 < count ? arguments[k + 1] : NULL;
        bool takes = options && (!strcmp(one, "-t") || !strcmp(one, "--threads") || !strcmp(one, "--marginals"));
        if (takes && !value)
            return usage("a value is missing behind ", one);
        k += takes;
        if (options && !strcmp(one, "--help")) {
            fputs(HELP, stdout);
            return 0;
        } else if (options && !strcmp(one, "--"))
            options = false;
        else if (takes && (one[1] == 't' || one[2] == 't')) {
            char *end;
            long number = strtol(value, &end, 10);
            if (*end || number < 1 || number > MOST_THREADS)
                return usage("--threads is a number from 1 to 256, not ", value);
            program.threads = (int)number;
        } else if (takes) {
            program.marginals = !strcmp(value, "best") ? OF_BEST : !strcmp(value, "all") ? OF_ALL : NO_MARGINALS;
            if (!program.marginals)
                return usage("--marginals is best or all, not ", value);
        } else if (options && one[0] == '-' && one[1])
            return usage("no such option: ", one);
        else if (given == 2)
            return usage("one argument too many: ", one);
        else
            paths[given++] = one;
    }
    if (!given)
        return usage("the model is missing", NULL);
    if (fcntl(1, F_GETFD) < 0) /* else the next file that is opened would take its place */
        return fputs("kcrf-tag: standard output is closed\n", stderr), SYSTEM;
    kcrf_error error;
    program.model = kcrf_open(paths[0], &error);
    if (!program.model) {
        fprintf(stderr, "kcrf-tag: %s: %s\n", paths[0], error.status == KCRF_IO ? "cannot be read, or is empty" : error.text);
        return error.status == KCRF_FORMAT ? DATA : SYSTEM;
    }
    if (program.model->meta->format > 1)
        return fprintf(stderr, "kcrf-tag: %s: data in quotes, in CoNLL-U, or with a column that tells sequences apart is for kcrf tag\n", paths[0]), DATA;
    program.form.name = strcmp(paths[1], "-") ? paths[1] : "<stdin>";
    program.form.attributes = program.model->meta->attributes != 0;
    program.form.separator = (char)program.model->meta->separator;
    if (strcmp(paths[1], "-") && (input = open(paths[1], O_RDONLY)) < 0)
        return fprintf(stderr, "kcrf-tag: %s: %s\n", paths[1], strerror(errno)), USAGE;
    if (writes_input(input, paths[0]))
        return fputs("kcrf-tag: the file that stdout goes to is also an input: give another name\n", stderr), USAGE;
    program.ring = program.threads == 1 ? 1 : 2 * (size_t)program.threads;
    program.jobs = calloc(program.ring, sizeof *program.jobs);
    struct worker *workers = calloc((size_t)program.threads + 1, sizeof *workers);
    pthread_t *threads = calloc((size_t)program.threads, sizeof *threads);
    int started = 0, status = program.jobs && workers && threads ? KCRF_OK : SYSTEM;
    pthread_mutex_init(&program.lock, NULL);
    pthread_cond_init(&program.ready, NULL);
    pthread_cond_init(&program.done, NULL);
    for (int k = 0; k <= program.threads && !status; k++) {
        workers[k].program = &program;
        workers[k].tagger = kcrf_tagger_new(program.model);
        status = workers[k].tagger ? KCRF_OK : SYSTEM;
        if (k && !status)
            workers[k].tagger->shared = workers[0].tagger; /* which labels no more than the first lines */
    }
    for (; started < program.threads && program.threads > 1 && !status; started++)
        status = pthread_create(threads + started, NULL, work, workers + started + 1) ? SYSTEM : KCRF_OK;
    if (status)
        fputs("kcrf-tag: out of memory, or of threads\n", stderr);
    else
        status = run(&program, workers, input);
    pthread_mutex_lock(&program.lock);
    program.ended = true;
    pthread_cond_broadcast(&program.ready);
    pthread_mutex_unlock(&program.lock);
    for (int k = 0; k < started && !status; k++) /* after an error they may still be at work */
        pthread_join(threads[k], NULL);
    if (status)
        _exit(status);
    return KCRF_OK;
}
