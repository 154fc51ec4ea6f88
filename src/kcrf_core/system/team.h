/* A team of threads that share the items of one piece of work after another without the interpreter's lock.

   The thread that brings work opens the gate, works along, closes the gate, and waits until no member is inside. Others
   come in while it is open; one that finds it closed goes back to waiting. So no member has to be awake for the work to
   be done, and a short one is over before the last of them has woken up. Members look for work for some microseconds
   before they sleep, as it mostly comes again at once. */

#ifndef KCRF_TEAM_H
#define KCRF_TEAM_H

#include <Python.h>
#include <pythread.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(_MSC_VER)
#include <intrin.h>
typedef volatile long kcrf_atomic;
#define ATOMIC_LOAD(x) _InterlockedOr(&(x), 0)
#define ATOMIC_ADD(x, by) _InterlockedExchangeAdd(&(x), (by)) /* what it was before */
#define ATOMIC_SWAP(x, value) _InterlockedExchange(&(x), (value))
#else
typedef long kcrf_atomic;
#define ATOMIC_LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define ATOMIC_ADD(x, by) __atomic_fetch_add(&(x), (by), __ATOMIC_SEQ_CST)
#define ATOMIC_SWAP(x, value) __atomic_exchange_n(&(x), (value), __ATOMIC_SEQ_CST)
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define BREATHE() _mm_pause()
#define SPINS 1000 /* some 50 microseconds */
#elif defined(__aarch64__) && defined(__GNUC__)
#define BREATHE() __asm__ volatile("isb")
#define SPINS 4000
#else
#define BREATHE() ((void)0)
#define SPINS 10000
#endif

#define GATE_CLOSED (-(1L << 20))

typedef void (*kcrf_work)(void *state, ptrdiff_t item, ptrdiff_t member);

typedef struct {
    kcrf_atomic asleep;
    PyThread_type_lock lock; /* held, except while the sleeper is woken up */
    char apart[112];         /* two cache lines each: no thread waits for a line that others write */
} kcrf_sleeper;

typedef struct {
    kcrf_work work;
    void *state;
    long count;
    char apart[104];
    kcrf_atomic next; /* item */
    char further_apart[120];
    kcrf_atomic inside, calls, busy, closing;
    int size, spins; /* members besides the one that brings work */
    kcrf_sleeper *sleepers; /* [size + 1], the last one brings work */
} kcrf_team;

static inline void kcrf_disband(kcrf_team *team)
{
    if (team == NULL)
        return;
    for (int i = 0; team->sleepers && i <= team->size; i++)
        if (team->sleepers[i].lock) {
            PyThread_release_lock(team->sleepers[i].lock);
            PyThread_free_lock(team->sleepers[i].lock);
        }
    free(team->sleepers);
    free(team);
}

/* NULL where memory or locks cannot be had. */
static inline kcrf_team *kcrf_assemble(int size, int spinning)
{
    kcrf_team *team = calloc(1, sizeof(kcrf_team));
    if (team == NULL)
        return NULL;
    team->size = size, team->spins = spinning ? SPINS : 0, team->inside = GATE_CLOSED;
    team->sleepers = calloc((size_t)size + 1, sizeof(kcrf_sleeper));
    for (int i = 0; team->sleepers && i <= size; i++) {
        if ((team->sleepers[i].lock = PyThread_allocate_lock()) == NULL) {
            kcrf_disband(team);
            return NULL;
        }
        PyThread_acquire_lock(team->sleepers[i].lock, WAIT_LOCK);
    }
    if (team->sleepers == NULL) {
        free(team);
        return NULL;
    }
    return team;
}

static inline void kcrf_wake(kcrf_sleeper *who)
{
    if (ATOMIC_LOAD(who->asleep) && ATOMIC_SWAP(who->asleep, 0))
        PyThread_release_lock(who->lock);
}

/* Sleep, unless *value has changed: the thread that wakes this one up changes it before. */
static inline void kcrf_sleep(kcrf_sleeper *who, kcrf_atomic *value, long was, int until)
{
    ATOMIC_SWAP(who->asleep, 1);
    if ((ATOMIC_LOAD(*value) == was) == until && ATOMIC_SWAP(who->asleep, 0))
        return;
    PyThread_acquire_lock(who->lock, WAIT_LOCK); /* the other thread has released it, or will */
}

static inline void kcrf_take_items(kcrf_team *team, ptrdiff_t member)
{
    long item;
    while ((item = ATOMIC_ADD(team->next, 1)) < team->count)
        team->work(team->state, item, member);
}

/* Work as a member until the team is closed. */
static inline void kcrf_serve(kcrf_team *team, int member)
{
    kcrf_sleeper *self = team->sleepers + member;
    long seen = 0;
    for (;;) {
        for (int spin = 0; ATOMIC_LOAD(team->calls) == seen && spin < team->spins; spin++)
            BREATHE();
        while (ATOMIC_LOAD(team->calls) == seen)
            kcrf_sleep(self, &team->calls, seen, 0);
        seen = ATOMIC_LOAD(team->calls);
        if (ATOMIC_LOAD(team->closing))
            return;
        if (ATOMIC_ADD(team->inside, 1) >= 0)
            kcrf_take_items(team, member);
        if (ATOMIC_ADD(team->inside, -1) == GATE_CLOSED + 1)
            kcrf_wake(team->sleepers + team->size);
    }
}

/* Work on items 0 to count, each once, on members that have time; alone if the team is at work for another thread. */
static inline void kcrf_share(kcrf_team *team, kcrf_work work, void *state, ptrdiff_t count)
{
    if (count <= 1 || team->size == 0 || ATOMIC_SWAP(team->busy, 1)) {
        for (ptrdiff_t item = 0; item < count; item++)
            work(state, item, team->size);
        return;
    }
    team->work = work, team->state = state, team->count = (long)count, team->next = 0;
    ATOMIC_ADD(team->inside, -GATE_CLOSED);
    ATOMIC_ADD(team->calls, 1);
    for (int i = 0; i < team->size && i < count - 1; i++)
        kcrf_wake(team->sleepers + i);
    kcrf_take_items(team, team->size);
    ATOMIC_ADD(team->inside, GATE_CLOSED);
    for (int spin = 0; ATOMIC_LOAD(team->inside) != GATE_CLOSED && spin < 4 * team->spins; spin++)
        BREATHE();
    while (ATOMIC_LOAD(team->inside) != GATE_CLOSED)
        kcrf_sleep(team->sleepers + team->size, &team->inside, GATE_CLOSED, 1);
    ATOMIC_SWAP(team->busy, 0);
}

/* End all members. */
static inline void kcrf_close(kcrf_team *team)
{
    ATOMIC_SWAP(team->closing, 1);
    ATOMIC_ADD(team->calls, 1);
    for (int i = 0; i < team->size; i++)
        kcrf_wake(team->sleepers + i);
}

#endif
