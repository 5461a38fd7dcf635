/* A stand-in for libnvidia-ml.so.1 that speaks to the simulated GPU's socket (TOKBENCH_SIM_GPU_SOCKET).
 *
 * The functions have NVML's own names, signatures and struct layouts, so that the real binding can be driven without a
 * GPU. Every call asks the socket; an `err code=N` reply becomes the return code N. A lost socket is GPU_IS_LOST.
 * Compiled with -DOLD_DRIVER it is an older library: no event-reasons symbol, no _v3 processes, no _v2 memory, and the
 * two power fields are refused one by one.
 * Environment, read at each call: NVML_STUB_COUNT (boards), NVML_STUB_MIG=1, NVML_STUB_VIRTUALIZATION=<mode>.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct board *nvmlDevice_t;
typedef struct {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType;
  nvmlReturn_t nvmlReturn;
  union { double d; unsigned int ui; unsigned long ul; unsigned long long ull; long long sll; } value;
} nvmlFieldValue_t;
typedef struct {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} nvmlPciInfo_t;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;

_Static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, nvmlReturn) == 28, "nvmlFieldValue_t");
_Static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36, "nvmlPciInfo_t");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40 && offsetof(nvmlMemory_v2_t, used) == 32, "nvmlMemory_v2_t");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, gpuInstanceId) == 16, "nvmlProcessInfo_t");

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };

/* Marks the library as a stand-in, and tells tests the sizes that this compiler gave. */
int tokbench_nvml_stub(void) { return 1; }

int tokbench_nvml_stub_size(int which) {
  static const size_t sizes[] = { sizeof(nvmlFieldValue_t), sizeof(nvmlPciInfo_t), sizeof(nvmlMemory_v2_t),
                                  sizeof(nvmlMemory_t), sizeof(nvmlProcessInfo_t), sizeof(nvmlUtilization_t) };
  return which >= 0 && which < 6 ? (int)sizes[which] : -1;
}

/* ---- the line protocol ---- */

enum { LINE = 8192 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int socket_fd = -1, sessions = 0;
static char board_memory;
#define BOARD ((nvmlDevice_t)(void *)&board_memory)

static int open_socket(void) {
  const char *path = getenv("TOKBENCH_SIM_GPU_SOCKET");
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  if (path == NULL || strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

static int send_all(const char *text, size_t length) {
  while (length > 0) {
    ssize_t sent = send(socket_fd, text, length, MSG_NOSIGNAL);
    if (sent <= 0) return -1;
    text += sent;
    length -= (size_t)sent;
  }
  return 0;
}

static int receive_line(char *line) {
  for (size_t at = 0; at + 1 < LINE; at += 1) {
    if (recv(socket_fd, line + at, 1, 0) != 1) return -1;
    if (line[at] != '\n') continue;
    line[at] = '\0';
    return 0;
  }
  return -1;
}

/* Sends one request and waits for its reply; threads take turns. */
static nvmlReturn_t ask(const char *request, char *line) {
  nvmlReturn_t code = GPU_IS_LOST;
  pthread_mutex_lock(&mutex);
  if (socket_fd >= 0 && send_all(request, strlen(request)) == 0 && receive_line(line) == 0) code = SUCCESS;
  if (code != SUCCESS && socket_fd >= 0) {
    close(socket_fd); /* lost for good: only a new nvmlInit_v2 connects again */
    socket_fd = -1;
  }
  pthread_mutex_unlock(&mutex);
  if (code != SUCCESS || strncmp(line, "ok", 2) == 0) return code;
  const char *at = strstr(line, "code=");
  return at == NULL ? UNKNOWN : atoi(at + 5);
}

/* The value of a field, percent-decoded; 0 when the reply has no such field. */
static int field(const char *line, const char *name, char *out, size_t size) {
  char key[64];
  snprintf(key, sizeof key, " %s=", name);
  const char *at = strstr(line, key);
  if (at == NULL || size == 0) return 0;
  size_t used = 0;
  for (at += strlen(key); *at != '\0' && *at != ' ' && used + 1 < size; at += 1) {
    unsigned int byte;
    if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1) {
      out[used++] = (char)byte;
      at += 2;
    } else {
      out[used++] = *at;
    }
  }
  out[used] = '\0';
  return 1;
}

static double number(const char *line, const char *name) {
  char text[64];
  return field(line, name, text, sizeof text) ? strtod(text, NULL) : 0;
}

static nvmlReturn_t ask_number(const char *request, const char *name, double *value) {
  char line[LINE];
  nvmlReturn_t code = ask(request, line);
  if (code == SUCCESS) *value = number(line, name);
  return code;
}

static nvmlReturn_t ask_u32(const char *request, const char *name, unsigned int *out) {
  double value = 0;
  nvmlReturn_t code = ask_number(request, name, &value);
  if (code == SUCCESS) *out = (unsigned int)(value + 0.5);
  return code;
}

static nvmlReturn_t ask_u64(const char *request, const char *name, unsigned long long *out) {
  double value = 0;
  nvmlReturn_t code = ask_number(request, name, &value);
  if (code == SUCCESS) *out = (unsigned long long)(value + 0.5);
  return code;
}

static nvmlReturn_t ask_text(const char *name, char *out, unsigned int length) {
  char line[LINE];
  nvmlReturn_t code = ask("info\n", line);
  if (code != SUCCESS) return code;
  memset(out, '#', length); /* what follows the NUL is garbage in the real library too */
  return field(line, name, out, length) ? SUCCESS : NOT_SUPPORTED;
}

static unsigned int setting(const char *name, unsigned int otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : (unsigned int)atoi(text);
}

/* ---- lifecycle and identity ---- */

nvmlReturn_t nvmlInit_v2(void) {
  pthread_mutex_lock(&mutex);
  if (sessions == 0 || socket_fd < 0) socket_fd = open_socket();
  if (socket_fd >= 0) sessions += 1;
  nvmlReturn_t code = socket_fd < 0 ? DRIVER_NOT_LOADED : SUCCESS;
  pthread_mutex_unlock(&mutex);
  return code;
}

nvmlReturn_t nvmlShutdown(void) {
  pthread_mutex_lock(&mutex);
  if (sessions > 0 && --sessions == 0) {
    if (socket_fd >= 0) close(socket_fd);
    socket_fd = -1;
  }
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) { return ask_text("driver", version, length); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  *count = setting("NVML_STUB_COUNT", 1);
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  if (index >= setting("NVML_STUB_COUNT", 1)) return INVALID_ARGUMENT;
  *device = BOARD;
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  char own[96];
  nvmlReturn_t code = ask_text("uuid", own, sizeof own);
  if (code != SUCCESS) return code;
  if (strcmp(uuid, own) != 0) return NOT_FOUND;
  *device = BOARD;
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
  return device == BOARD ? ask_text("name", name, length) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
  return device == BOARD ? ask_text("uuid", uuid, length) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  if (device != BOARD) return INVALID_ARGUMENT;
  memset(pci, 0, sizeof *pci);
  return ask_text("pci", pci->busId, sizeof pci->busId);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMig) {
  *isMig = 0;
  return device == BOARD ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
  if (device != BOARD) return INVALID_ARGUMENT;
  *current = *pending = setting("NVML_STUB_MIG", 0);
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, int *mode) {
  *mode = (int)setting("NVML_STUB_VIRTUALIZATION", 0);
  return device == BOARD ? SUCCESS : INVALID_ARGUMENT;
}

/* ---- energy, power, temperature ---- */

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules) {
  return device == BOARD ? ask_u64("energy\n", "energy_mj", millijoules) : INVALID_ARGUMENT;
}

static void fill_field(nvmlFieldValue_t *value, const char *line) {
  const char *name = value->fieldId == 186 ? "power_instant_mw" : value->fieldId == 185 ? "power_average_mw" : NULL;
#ifdef OLD_DRIVER
  name = NULL;
#endif
  value->nvmlReturn = name == NULL ? NOT_SUPPORTED : SUCCESS;
  value->valueType = 1;
  value->value.ull = 0;
  if (name != NULL) value->value.ui = (unsigned int)(number(line, name) + 0.5);
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
  char line[LINE];
  if (device != BOARD) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask("read\n", line);
  for (int at = 0; code == SUCCESS && at < count; at += 1) fill_field(&values[at], line);
  return code;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
  return device == BOARD && sensor == 0 ? ask_u32("read\n", "temp_c", celsius) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *mw) {
  return device == BOARD ? ask_u32("read\n", "limit_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *mw) {
  return device == BOARD ? ask_u32("read\n", "enforced_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *mw) {
  return device == BOARD ? ask_u32("info\n", "default_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max) {
  if (device != BOARD) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask_u32("info\n", "min_mw", min);
  return code == SUCCESS ? ask_u32("info\n", "max_mw", max) : code;
}

/* ---- clocks, reasons, utilisation, memory, processes ---- */

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
  if (device != BOARD || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32("read\n", type == 2 ? "mem_mhz" : "sm_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
  if (device != BOARD || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32("info\n", type == 2 ? "mem_mhz" : "f_max", mhz);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz) {
  if (device != BOARD) return INVALID_ARGUMENT;
  unsigned int room = *count;
  *count = 1;
  return mhz == NULL || room < 1 ? INSUFFICIENT_SIZE : ask_u32("info\n", "mem_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz) {
  char line[LINE];
  if (device != BOARD) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask("info\n", line);
  if (code != SUCCESS) return code;
  if (memory_mhz != (unsigned int)number(line, "mem_mhz")) return NOT_FOUND;
  unsigned int min = (unsigned int)number(line, "f_min"), max = (unsigned int)number(line, "f_max");
  unsigned int step = (unsigned int)number(line, "f_step"), room = *count;
  *count = (max - min) / step + 1;
  if (mhz == NULL || room < *count) return INSUFFICIENT_SIZE;
  for (unsigned int at = 0; at < *count; at += 1) mhz[at] = max - at * step;
  return SUCCESS;
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *mask) {
#else
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *mask) {
#endif
  return device == BOARD ? ask_u64("read\n", "reasons", mask) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  if (device != BOARD) return INVALID_ARGUMENT;
  rates->memory = 0;
  return ask_u32("read\n", "util_pct", &rates->gpu);
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
#else
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  if (memory->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
#endif
  if (device != BOARD) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask_u64("info\n", "mem_total_bytes", &memory->total);
  if (code == SUCCESS) code = ask_u64("read\n", "mem_used_bytes", &memory->used);
  memory->free = memory->total - memory->used;
  return code;
}

static unsigned int parse_processes(char *text, nvmlProcessInfo_t *out, unsigned int room) {
  unsigned int found = 0;
  char *rest = NULL;
  for (char *part = strtok_r(text, ",", &rest); part != NULL; part = strtok_r(NULL, ",", &rest)) {
    char *colon = strchr(part, ':');
    if (found < room) {
      memset(&out[found], 0, sizeof out[found]);
      out[found].pid = (unsigned int)strtoul(part, NULL, 10);
      out[found].usedGpuMemory = colon == NULL || colon[1] == '\0' ? ~0ULL : strtoull(colon + 1, NULL, 10);
    }
    found += 1;
  }
  return found;
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out) {
#else
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out) {
#endif
  char line[LINE], text[LINE];
  if (device != BOARD) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask("processes\n", line);
  if (code != SUCCESS) return code;
  unsigned int room = out == NULL ? 0 : *count;
  *count = field(line, "pids", text, sizeof text) ? parse_processes(text, out, room) : 0;
  return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

/* ---- levers ---- */

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int mw) {
  char request[64], line[LINE];
  snprintf(request, sizeof request, "set_limit mw=%u\n", mw);
  return device == BOARD ? ask(request, line) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min, unsigned int max) {
  char request[64], line[LINE];
  snprintf(request, sizeof request, "lock min_mhz=%u max_mhz=%u\n", min, max);
  return device == BOARD ? ask(request, line) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  char line[LINE];
  return device == BOARD ? ask("reset_lock\n", line) : INVALID_ARGUMENT;
}
