// Stops a process at every system call and signal, and searches its memory and registers for secrets.
//
//     stops record RECORDING COMMAND...     runs COMMAND and records what changes from stop to stop
//     stops sample RECORDING COMMAND...     the same, at random moments instead of system calls
//     stops search RECORDING SECRETS        searches the recording
//
// Recording comes first, because some secrets are known only when COMMAND has ended: a new master key is then derived
// from the vault. COMMAND and its children are recorded until they execute another program. The memory of a process is
// every page that it wrote, whatever the protection, and its shared writable mappings; the registers are all that the
// kernel saves, the vector registers included.
//
// SECRETS has one line for each spelling: a name, the least length of a hit, and the bytes in hexadecimal. `search`
// prints one line for each hit, with tabs: first stop, last stop, the system calls of up to 20
// stops, process, place, address, length, name.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, EDGE = 7, RUN = 256, PLACES = 4096 };

static void fail(const char *what) {
  fprintf(stderr, "stops: %s: %s\n", what, strerror(errno));
  exit(70);
}

static void *allocated(size_t size) {
  void *memory = calloc(1, size);
  if (!memory) fail("memory");
  return memory;
}

// The recording: entries, each followed by `size` bytes. `detail` is the system call of a STOP, with bit 31 at its end, or
// the negative number of a signal; 1 for BYTES of registers; and 1 for GONE if the process became another program.
enum Kind { STOP = 1, PLACE, BYTES, GONE, ENVIRONMENT };
struct Entry {
  uint32_t kind, stop, process, place, size, detail;
  uint64_t address;
};
static FILE *recording;

static void record(struct Entry entry, const void *bytes) {
  if (fwrite(&entry, sizeof entry, 1, recording) != 1 || (entry.size && fwrite(bytes, entry.size, 1, recording) != 1))
    fail("cannot write the recording");
}

// Places: the name of a mapping, with "guarded " before it if it is left out of core dumps and has no file.
static char *places[PLACES];
static uint32_t place_count;

static uint32_t place(const char *name) {
  for (uint32_t i = 0; i < place_count; i++)
    if (!strcmp(places[i], name)) return i;
  if (place_count == PLACES) fail("too many places");
  places[place_count] = strdup(name);
  record((struct Entry){.kind = PLACE, .place = place_count, .size = (uint32_t)strlen(name)}, name);
  return place_count++;
}

// A page as it was at the last stop. `round` is the last stop of its process at which it was present.
struct Page {
  uint64_t address;
  uint32_t round;
  uint8_t bytes[PAGE];
};

struct Mapping {
  uint64_t start, end;
  uint32_t place;
  bool is_shared, is_written;
};

struct Process {
  pid_t id;
  int memory, pages, maps;
  char *text;  // of /proc/PID/maps when `mappings` was read
  size_t text_size;
  struct Mapping *mappings;
  size_t mapping_count;
  bool is_stale;  // advice changed, which `maps` does not show
  struct Page **table;  // open addressing
  size_t table_size, page_count;
  uint32_t round;  // the number of its stops
  struct Process *next;
};
static struct Process *processes;

static struct Page **slot(struct Process *p, uint64_t address) {
  size_t i = (address / PAGE * 0x9E3779B97F4A7C15u) >> 20 & (p->table_size - 1);
  while (p->table[i] && p->table[i]->address != address) i = (i + 1) & (p->table_size - 1);
  return &p->table[i];
}

static void grow(struct Process *p) {
  struct Page **old = p->table;
  size_t size = p->table_size;
  p->table_size = size ? size * 2 : 1 << 14;
  p->table = allocated(p->table_size * sizeof *p->table);
  for (size_t i = 0; i < size; i++)
    if (old[i]) *slot(p, old[i]->address) = old[i];
  free(old);
}

static int open_of(pid_t id, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", id, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path);
  return file;
}

static void open_files(struct Process *p) {
  p->memory = open_of(p->id, "mem");
  p->pages = open_of(p->id, "pagemap");
  p->maps = open_of(p->id, "maps");
  p->is_stale = true;
}

static void close_files(struct Process *p) {
  close(p->memory);
  close(p->pages);
  close(p->maps);
}

// Records where the environment of a process is.
static void record_environment(pid_t id) {
  char text[4096];
  int file = open_of(id, "stat");
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) fail("cannot read a file of /proc");
  text[size] = 0;
  unsigned long start = 0, end = 0;
  char *field = strrchr(text, ')');  // the second field; those at 50 and 51 are env_start and env_end of proc(5)
  for (int number = 2; field && number < 51; number++) {
    field = strchr(field + 1, ' ');
    if (field && number == 49) start = strtoul(field, NULL, 10);
    if (field && number == 50) end = strtoul(field, NULL, 10);
  }
  record((struct Entry){.kind = ENVIRONMENT, .process = (uint32_t)id, .address = start, .detail = (uint32_t)(end - start)},
      NULL);
}

static char *text_of(int file, size_t *size) {
  static char *text;
  static size_t capacity;
  *size = 0;
  for (;;) {
    if (capacity - *size < 65536 + 1 && !(text = realloc(text, capacity = capacity * 2 + (1 << 18)))) fail("memory");
    ssize_t count = pread(file, text + *size, capacity - *size - 1, (off_t)*size);
    if (count < 0) fail("cannot read a file of /proc");
    if (!count) break;
    *size += (size_t)count;
  }
  text[*size] = 0;
  return text;
}

static void read_mappings(struct Process *p) {
  size_t size;
  char *text = text_of(p->maps, &size);
  if (!p->is_stale && size == p->text_size && !memcmp(text, p->text, size)) return;
  free(p->text);
  if (!(p->text = malloc(size + 1))) fail("memory");
  memcpy(p->text, text, p->text_size = size);
  p->is_stale = false;
  int file = open_of(p->id, "smaps");
  text = text_of(file, &size);
  close(file);
  p->mapping_count = 0;
  char name[256] = "", *save = NULL;
  for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    unsigned long start, end, inode;
    char flags[8], path[200] = "";
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %199[^\n]", &start, &end, flags, &inode, path) >= 4) {
      p->mappings = realloc(p->mappings, (p->mapping_count + 1) * sizeof *p->mappings);
      if (!p->mappings) fail("memory");
      snprintf(name, sizeof name, "%s", *path ? path : "anonymous memory");
      p->mappings[p->mapping_count++] = (struct Mapping){
          start, end, 0, flags[3] == 's', flags[1] == 'w'};
    } else if (!strncmp(line, "VmFlags:", 8)) {
      char full[300];
      bool is_guarded = strstr(line, " dd") && !strcmp(name, "anonymous memory");
      bool is_locked = strstr(line, " lo");
      snprintf(full, sizeof full, "%s%s", is_guarded ? is_locked ? "guarded " : "guarded, unlocked " : "", name);
      p->mappings[p->mapping_count - 1].place = place(full);
    }
  }
}

static uint32_t stop_number;

static void edge(struct Process *p, uint64_t address, size_t offset, uint8_t *bytes) {
  struct Page *page = *slot(p, address);
  if (page && page->round + 1 >= p->round) memcpy(bytes, page->bytes + offset, EDGE);
  else memset(bytes, 0, EDGE);
}

static bool is_zero(const uint8_t *bytes) {
  return !bytes[0] && !memcmp(bytes, bytes + 1, PAGE - 1);
}

// Records one page that changed, with the ends of its neighbours, so that a hit across two pages is found.
static void record_page(struct Process *p, struct Page *page, uint32_t at) {
  uint8_t bytes[EDGE + PAGE + EDGE];
  edge(p, page->address - PAGE, PAGE - EDGE, bytes);
  memcpy(bytes + EDGE, page->bytes, PAGE);
  edge(p, page->address + PAGE, 0, bytes + EDGE + PAGE);
  record((struct Entry){BYTES, stop_number, (uint32_t)p->id, at, sizeof bytes, 0, page->address - EDGE}, bytes);
}

static void search_mapping(struct Process *p, struct Mapping *m) {
  static uint64_t flags[RUN];
  static uint8_t bytes[RUN * PAGE];
  static struct Page *changed[RUN];
  for (uint64_t start = m->start; start < m->end; start += RUN * PAGE) {
    size_t count = (m->end - start) / PAGE < RUN ? (m->end - start) / PAGE : RUN;
    ssize_t got = pread(p->pages, flags, count * 8, (off_t)(start / PAGE * 8));
    if (got <= 0) return;  // [vsyscall]
    size_t change_count = 0;
    for (size_t first = 0; first < count; first++) {
      // Present or swapped out, and not the page of a file, unless the file is shared memory.
#define WANTED(f) ((f) >> 62 && (!((f) >> 61 & 1) || (m->is_shared && m->is_written)))
      if (!WANTED(flags[first])) continue;
      size_t last = first;
      while (last + 1 < count && WANTED(flags[last + 1])) last++;
      ssize_t length = pread(p->memory, bytes, (last - first + 1) * PAGE, (off_t)(start + first * PAGE));
      for (size_t i = 0; i < (length > 0 ? (size_t)length / PAGE : 0); i++) {
        uint64_t address = start + (first + i) * PAGE;
        struct Page **known = slot(p, address);
        uint8_t *now = bytes + i * PAGE;
        bool is_new = !*known;
        if (is_new) {
          if (p->page_count++ * 2 > p->table_size) grow(p), known = slot(p, address);
          *known = allocated(sizeof **known);
          (*known)->address = address;
        }
        bool was_here = !is_new && (*known)->round + 1 >= p->round;
        (*known)->round = p->round;
        if (was_here ? !memcmp((*known)->bytes, now, PAGE) : is_zero(now)) {
          if (!was_here) memset((*known)->bytes, 0, PAGE);
          continue;
        }
        memcpy((*known)->bytes, now, PAGE);
        changed[change_count++] = *known;
      }
      first = last;
    }
    for (size_t i = 0; i < change_count; i++) record_page(p, changed[i], m->place);
  }
}

static void search_registers(struct Process *p, pid_t thread) {
  static uint8_t bytes[65536];
  static const struct { int set; const char *name; } sets[] = {
      {NT_PRSTATUS, "general registers"},
#ifdef __x86_64__
      {NT_X86_XSTATE, "vector registers"},
#else
      {NT_FPREGSET, "vector registers"},
#endif
  };
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
    struct iovec all = {bytes, sizeof bytes};
    if (ptrace(PTRACE_GETREGSET, thread, (void *)(long)sets[i].set, &all)) {
      if (errno == ESRCH) return;
      fail("cannot read the registers");
    }
    record((struct Entry){BYTES, stop_number, (uint32_t)p->id, place(sets[i].name), (uint32_t)all.iov_len, 1, i << 32},
        bytes);
  }
}

static uint64_t byte_count;

static void search_stop(struct Process *p, pid_t thread, uint32_t detail) {
  stop_number++;
  p->round++;
  record((struct Entry){.kind = STOP, .stop = stop_number, .process = (uint32_t)p->id, .detail = detail}, NULL);
  read_mappings(p);
  for (size_t i = 0; i < p->mapping_count; i++) search_mapping(p, &p->mappings[i]);
  for (size_t i = 0; i < p->table_size; i++) {
    struct Page *page = p->table[i];
    if (!page) continue;
    if (page->round == p->round) byte_count += PAGE;
    // A page that is gone is new when it comes back: `round` is then older than the last stop.
    else if (page->round + 1 == p->round)
      record((struct Entry){.kind = GONE, .stop = stop_number, .process = (uint32_t)p->id, .address = page->address}, NULL);
  }
  search_registers(p, thread);
}

// Tracing

static pid_t thread_group(pid_t thread) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", thread);
  FILE *file = fopen(path, "re");
  int group = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Tgid: %d", &group) == 1) break;
  if (file) fclose(file);
  return group;
}

static struct Process *process_of(pid_t thread) {
  for (struct Process *p = processes; p; p = p->next)
    if (p->id == thread) return p;
  pid_t group = thread_group(thread);
  for (struct Process *p = processes; p; p = p->next)
    if (p->id == group) return p;
  if (!group) return NULL;
  struct Process *p = allocated(sizeof *p);
  p->id = group;
  grow(p);
  open_files(p);
  p->next = processes;
  return processes = p;
}

static pid_t start(char **command, long options) {
  pid_t id = fork();
  if (id < 0) fail("fork");
  if (!id) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    execvp(command[0], command);
    fail(command[0]);
  }
  int status;
  if (waitpid(id, &status, 0) < 0 || !WIFSTOPPED(status)) fail("the command did not start");
  if (ptrace(PTRACE_SETOPTIONS, id, 0, options | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) fail("ptrace is not possible here");
  return id;
}

static bool changes_advice(uint64_t number) { return number == SYS_madvise || number == SYS_mlock || number == SYS_mlock2; }

// Handles one stop of a thread. Returns the request that continues it.
static int handle(pid_t thread, int status, pid_t first, bool *has_started, int *signal) {
  *signal = 0;
  int event = status >> 16, number = WSTOPSIG(status);
  if (event == PTRACE_EVENT_EXEC) {
    if (thread == first && !*has_started) {
      *has_started = true;
      struct Process *p = process_of(thread);
      if (!p) return PTRACE_DETACH;
      close_files(p);
      open_files(p);
      record_environment(p->id);
      return PTRACE_SYSCALL;
    }
    // Another program.
    record((struct Entry){.kind = GONE, .stop = stop_number + 1, .process = (uint32_t)thread, .detail = 1}, NULL);
    return PTRACE_DETACH;
  }
  if (!*has_started) return PTRACE_CONT;
  struct Process *p = process_of(thread);
  if (!p) return PTRACE_SYSCALL;
  if (number == (SIGTRAP | 0x80)) {
    struct __ptrace_syscall_info info = {0};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0) return PTRACE_SYSCALL;
    static uint64_t last[1 << 22];
    bool is_entry = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (is_entry) last[thread & ((1 << 22) - 1)] = info.entry.nr;
    uint64_t call = last[thread & ((1 << 22) - 1)];
    if (changes_advice(call) && !is_entry) p->is_stale = true;
    search_stop(p, thread, (uint32_t)call | (is_entry ? 0 : 1u << 31));
  } else if (!event) {
    search_stop(p, thread, (uint32_t)-number);
    // A process that stops itself continues: the stop is searched.
    if (number != SIGSTOP) *signal = number;
  }
  return PTRACE_SYSCALL;
}

static int run_recording(char **command) {
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  pid_t first = start(command, options);
  bool has_started = false;
  ptrace(PTRACE_CONT, first, 0, 0);
  int result = 0;
  for (;;) {
    int status;
    pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0 && errno == ECHILD) break;
    if (thread < 0) continue;
    if (!WIFSTOPPED(status)) {
      if (thread == first) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    int signal, request = handle(thread, status, first, &has_started, &signal);
    ptrace((enum __ptrace_request)request, thread, 0, (long)signal);
  }
  return result;
}

// Stops the first thread at random moments. The others run on.
static int run_sampling(char **command) {
  pid_t first = start(command, 0);
  bool has_started = false;
  srandom((unsigned)time(NULL) ^ (unsigned)getpid());
  ptrace(PTRACE_CONT, first, 0, 0);
  int status;
  while (waitpid(first, &status, 0) >= 0 && WIFSTOPPED(status)) {
    int signal = 0;
    if (status >> 16 == PTRACE_EVENT_EXEC) {
      if (has_started) {
        ptrace(PTRACE_DETACH, first, 0, 0);
        continue;
      }
      has_started = true;
      struct Process *p = process_of(first);
      close_files(p);
      open_files(p);
      record_environment(p->id);
    } else if (!(status >> 16) && has_started) {
      search_stop(process_of(first), first, (uint32_t)-WSTOPSIG(status));
      if (WSTOPSIG(status) != SIGSTOP) signal = WSTOPSIG(status);
    }
    ptrace(PTRACE_CONT, first, 0, (long)signal);
    if (!has_started) continue;
    struct timespec pause = {0, random() % 300000};
    nanosleep(&pause, NULL);
    syscall(SYS_tgkill, first, first, SIGSTOP);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Searching

struct Window {
  uint64_t bytes;
  uint32_t secret;
};
struct Secret {
  char name[80];
  uint32_t least;
};
static struct Window *windows;
static size_t window_count;
static struct Secret *secrets;
static uint8_t *filter;  // a bit for each hash of a window

static size_t hash(uint64_t window) { return (window * 0x9E3779B97F4A7C15u) >> 40; }

static void add_secret(char *line) {
  static uint32_t count;
  struct Secret s;
  static char digits[1 << 17];
  if (sscanf(line, "%79s %u %131071s", s.name, &s.least, digits) != 3) fail("a wrong line of the secrets");
  if (!(secrets = realloc(secrets, (count + 1) * sizeof s))) fail("memory");
  secrets[count] = s;
  size_t size = strlen(digits) / 2;
  uint8_t *bytes = allocated(size);
  for (size_t i = 0; i < size; i++) sscanf(digits + 2 * i, "%2hhx", &bytes[i]);
  for (size_t i = 0; i + 8 <= size; i++) {
    if (!(windows = realloc(windows, (window_count + 1) * sizeof *windows))) fail("memory");
    memcpy(&windows[window_count].bytes, bytes + i, 8);
    windows[window_count].secret = count;
    size_t bit = hash(windows[window_count++].bytes);
    filter[bit / 8] |= (uint8_t)(1 << bit % 8);
  }
  free(bytes);
  count++;
}

static int by_bytes(const void *a, const void *b) {
  uint64_t x = ((const struct Window *)a)->bytes, y = ((const struct Window *)b)->bytes;
  return x < y ? -1 : x > y;
}

struct Hit {
  uint32_t secret, length, stop, last, process, place;
  uint64_t address;
  bool is_open;
};
static struct Hit *hits;
static size_t hit_count;

static void add_hit(struct Hit hit) {
  if (hit.length < secrets[hit.secret].least) return;
  if (!(hits = realloc(hits, (hit_count + 1) * sizeof hit))) fail("memory");
  hits[hit_count++] = hit;
}

// Ends the hits in a page or register set that changed or went away.
static void close_hits(struct Entry e, uint64_t start, uint64_t end) {
  for (size_t i = 0; i < hit_count; i++)
    if (hits[i].is_open && hits[i].process == e.process && hits[i].address >= start && hits[i].address < end) {
      hits[i].is_open = false;
      hits[i].last = e.stop - 1;
    }
}

static void search_bytes(struct Entry e, const uint8_t *bytes) {
  struct Hit run = {.length = 0};
  for (uint32_t i = 0; i + 8 <= e.size; i++) {
    uint64_t window;
    memcpy(&window, bytes + i, 8);
    size_t bit = hash(window);
    if (!(filter[bit / 8] >> bit % 8 & 1)) continue;
    struct Window key = {.bytes = window}, *found = bsearch(&key, windows, window_count, sizeof key, by_bytes);
    if (!found) continue;
    uint64_t address = e.address + i;
    if (run.length && run.secret == found->secret && run.address + run.length == address + 7) {
      run.length++;
      continue;
    }
    if (run.length) add_hit(run);
    run = (struct Hit){found->secret, 8, e.stop, e.stop, e.process, e.place, address, true};
  }
  if (run.length) add_hit(run);
}

static int run_search(const char *secrets_path) {
  filter = allocated((1 << 24) / 8);
  FILE *file = fopen(secrets_path, "re");
  if (!file) fail(secrets_path);
  static char line[1 << 18];
  while (fgets(line, sizeof line, file)) add_secret(line);
  fclose(file);
  qsort(windows, window_count, sizeof *windows, by_bytes);
  struct Entry e;
  static uint8_t bytes[1 << 17];
  uint32_t *calls = NULL, last = 0;
  struct Entry environment = {0};
  while (fread(&e, sizeof e, 1, recording) == 1) {
    if (e.size > sizeof bytes || (e.size && fread(bytes, e.size, 1, recording) != 1)) fail("the recording is cut");
    if (e.kind == PLACE) {
      places[e.place] = strndup((char *)bytes, e.size);
    } else if (e.kind == STOP) {
      if (!(calls = realloc(calls, (e.stop + 1) * sizeof *calls))) fail("memory");
      calls[last = e.stop] = e.detail;
    } else if (e.kind == ENVIRONMENT) {
      environment = e;
    } else if (e.kind == GONE) {
      close_hits(e, e.address, e.detail ? UINT64_MAX : e.address + PAGE);
    } else {
      uint64_t inner = e.detail ? e.address : e.address + EDGE;
      close_hits(e, inner - (e.detail ? 0 : EDGE), inner + (e.detail ? e.size : PAGE));
      search_bytes(e, bytes);
    }
  }
  for (size_t i = 0; i < hit_count; i++) {
    struct Hit h = hits[i];
    if (h.is_open) h.last = last;
    if (h.last < h.stop) continue;  // found again with the page after it
    bool is_environment = h.process == environment.process && h.address - environment.address < environment.detail;
    printf("%u\t%u\t", h.stop, h.last);
    for (uint32_t stop = h.stop; stop <= h.last && stop < h.stop + 20; stop++)
      printf("%s%u", stop > h.stop ? "," : "", calls[stop]);
    printf("\t%u\t%s\t%llx\t%u\t%s\n", h.process, is_environment ? "environment" : places[h.place],
        (unsigned long long)h.address, h.length, secrets[h.secret].name);
  }
  return 0;
}

int main(int count, char **arguments) {
  bool is_search = count == 4 && !strcmp(arguments[1], "search");
  bool is_record = count >= 4 && !strcmp(arguments[1], "record");
  bool is_sample = count >= 4 && !strcmp(arguments[1], "sample");
  if (!is_search && !is_record && !is_sample) {
    fprintf(stderr, "usage: stops record|sample RECORDING COMMAND... | stops search RECORDING SECRETS\n");
    return 64;
  }
  recording = fopen(arguments[2], is_search ? "re" : "we");
  if (!recording) fail(arguments[2]);
  static char buffer[1 << 20];
  setvbuf(recording, buffer, _IOFBF, sizeof buffer);
  if (is_search) return run_search(arguments[3]);
  int result = is_record ? run_recording(arguments + 3) : run_sampling(arguments + 3);
  if (fclose(recording)) fail("cannot write the recording");
  // The driver reads this line: stops, bytes of memory, the command's status.
  FILE *summary = fopen("/dev/fd/9", "w");
  if (summary) fprintf(summary, "%u %llu %d\n", stop_number, (unsigned long long)byte_count, result);
  return 0;
}
