/* A stand-in for libnvidia-ml.so.1 that speaks to simulated GPUs' sockets (TOKBENCH_SIM_GPU_SOCKET, one per board,
 * separated by colons).
 *
 * The functions have NVML's own names, signatures and struct layouts, so that the real binding can be driven without a
 * GPU. Every call asks the socket; an `err code=N` reply becomes the return code N. A lost socket is GPU_IS_LOST.
 * Compiled with -DOLD_DRIVER it is an older library: no event-reasons symbol, no _v3 processes, no _v2 memory, and the
 * two power fields are refused one by one.
 * Environment, read at each call: NVML_STUB_COUNT (boards; those without a socket of their own are strangers),
 * NVML_STUB_MIG=1, NVML_STUB_VIRTUALIZATION=<mode>, NVML_STUB_ARCHITECTURE, NVML_STUB_COMPUTE_CAPABILITY=<major><minor>,
 * NVML_STUB_FAIL=<function>=<code>,<function>=<code> (those functions do nothing and return that code).
 * Inside a process, tokbench_nvml_stub_force does the same.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
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
typedef struct {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
typedef struct event_set { unsigned long long types, after; nvmlDevice_t device; } *nvmlEventSet_t;

_Static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, nvmlReturn) == 28, "nvmlFieldValue_t");
_Static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36, "nvmlPciInfo_t");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40 && offsetof(nvmlMemory_v2_t, used) == 32, "nvmlMemory_v2_t");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, gpuInstanceId) == 16, "nvmlProcessInfo_t");
_Static_assert(sizeof(nvmlEventData_t) == 32 && offsetof(nvmlEventData_t, eventData) == 16, "nvmlEventData_t");

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };

/* Marks the library as a stand-in, and tells tests the sizes that this compiler gave. */
int tokbench_nvml_stub(void) { return 1; }

int tokbench_nvml_stub_size(int which) {
  static const size_t sizes[] = { sizeof(nvmlFieldValue_t), sizeof(nvmlPciInfo_t), sizeof(nvmlMemory_v2_t),
                                  sizeof(nvmlMemory_t), sizeof(nvmlProcessInfo_t), sizeof(nvmlUtilization_t),
                                  sizeof(nvmlEventData_t) };
  return which >= 0 && which < 7 ? (int)sizes[which] : -1;
}

/* ---- forced return codes ---- */

enum { FORCED = 128, NAME = 64, FOREVER = -1 };
static struct { char name[NAME]; int code, times; } forced[FORCED];
static int forced_count = 0;

/* From now on `function` returns `code`, `times` times (-1: for good). NULL forgets all. */
void tokbench_nvml_stub_force(const char *function, int code, int times) {
  if (function == NULL) {
    forced_count = 0;
  } else if (forced_count < FORCED) {
    snprintf(forced[forced_count].name, NAME, "%s", function);
    forced[forced_count].code = code;
    forced[forced_count].times = times;
    forced_count += 1;
  }
}

static nvmlReturn_t forced_code(const char *function) {
  for (int at = 0; at < forced_count; at += 1) {
    if (strcmp(forced[at].name, function) != 0 || forced[at].times == 0) continue;
    if (forced[at].times != FOREVER) forced[at].times -= 1;
    return forced[at].code;
  }
  const char *list = getenv("NVML_STUB_FAIL");
  size_t length = strlen(function);
  for (const char *at = list; at != NULL && *at != '\0'; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
    if (strncmp(at, function, length) == 0 && at[length] == '=') return atoi(at + length + 1);
  }
  return SUCCESS;
}

#define OR_FORCED                                 \
  do {                                            \
    nvmlReturn_t code_ = forced_code(__func__);   \
    if (code_ != SUCCESS) return code_;           \
  } while (0)

/* ---- the line protocol ---- */

enum { LINE = 8192 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

enum { MAX_BOARDS = 8 };
static struct board { char memory; } boards[MAX_BOARDS];
static int socket_fds[MAX_BOARDS] = { -1, -1, -1, -1, -1, -1, -1, -1 }, sessions = 0;

static int known(nvmlDevice_t device) { return device >= boards && device < boards + MAX_BOARDS; }

/* How many sockets are named. */
static unsigned int socket_count(void) {
  const char *at = getenv("TOKBENCH_SIM_GPU_SOCKET");
  unsigned int count = at == NULL ? 0 : 1;
  for (; at != NULL && *at != '\0'; at += 1) count += *at == ':';
  return count < MAX_BOARDS ? count : MAX_BOARDS;
}

/* The socket of a board; strangers, and questions about no board, go to the first one. */
static int *socket_of(nvmlDevice_t device) {
  size_t index = device == NULL ? 0 : (size_t)(device - boards);
  return &socket_fds[index < socket_count() ? index : 0];
}

static int open_socket(unsigned int index) {
  const char *path = getenv("TOKBENCH_SIM_GPU_SOCKET");
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  for (; path != NULL && index > 0; index -= 1) path = strchr(path, ':') == NULL ? NULL : strchr(path, ':') + 1;
  size_t length = path == NULL ? 0 : strcspn(path, ":");
  if (path == NULL || length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, length);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

static int send_all(int fd, const char *text, size_t length) {
  while (length > 0) {
    ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
    if (sent <= 0) return -1;
    text += sent;
    length -= (size_t)sent;
  }
  return 0;
}

/* Whoever holds the mutex has asked once, so what comes is that reply alone. */
static int receive_line(int fd, char *line) {
  size_t length = 0;
  while (length + 1 < LINE) {
    ssize_t got = recv(fd, line + length, LINE - 1 - length, 0);
    if (got <= 0) return -1;
    length += (size_t)got;
    if (line[length - 1] != '\n') continue;
    line[length - 1] = '\0';
    return 0;
  }
  return -1;
}

/* Sends one request to a board and waits for its reply; threads take turns. */
static nvmlReturn_t ask(nvmlDevice_t device, const char *request, char *line) {
  nvmlReturn_t code = GPU_IS_LOST;
  int *fd = socket_of(device);
  pthread_mutex_lock(&mutex);
  if (*fd >= 0 && send_all(*fd, request, strlen(request)) == 0 && receive_line(*fd, line) == 0) code = SUCCESS;
  if (code != SUCCESS && *fd >= 0) {
    close(*fd); /* lost for good: only a new nvmlInit_v2 connects again */
    *fd = -1;
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

static nvmlReturn_t ask_number(nvmlDevice_t device, const char *request, const char *name, double *value) {
  char line[LINE];
  nvmlReturn_t code = ask(device, request, line);
  if (code == SUCCESS) *value = number(line, name);
  return code;
}

static nvmlReturn_t ask_u32(nvmlDevice_t device, const char *request, const char *name, unsigned int *out) {
  double value = 0;
  nvmlReturn_t code = ask_number(device, request, name, &value);
  if (code == SUCCESS) *out = (unsigned int)(value + 0.5);
  return code;
}

static nvmlReturn_t ask_u64(nvmlDevice_t device, const char *request, const char *name, unsigned long long *out) {
  double value = 0;
  nvmlReturn_t code = ask_number(device, request, name, &value);
  if (code == SUCCESS) *out = (unsigned long long)(value + 0.5);
  return code;
}

static nvmlReturn_t ask_text(nvmlDevice_t device, const char *name, char *out, unsigned int length) {
  char line[LINE];
  nvmlReturn_t code = ask(device, "info\n", line);
  if (code != SUCCESS) return code;
  memset(out, '#', length); /* what follows the NUL is garbage in the real library too */
  return field(line, name, out, length) ? SUCCESS : NOT_SUPPORTED;
}

static unsigned int setting(const char *name, unsigned int otherwise) {
  const char *text = getenv(name);
  return text == NULL ? otherwise : (unsigned int)atoi(text);
}

static unsigned int board_count(void) {
  unsigned int sockets = socket_count();
  return setting("NVML_STUB_COUNT", sockets > 0 ? sockets : 1);
}

/* ---- lifecycle and identity ---- */

nvmlReturn_t nvmlInit_v2(void) {
  OR_FORCED;
  int open = 0;
  pthread_mutex_lock(&mutex);
  for (unsigned int at = 0; at < socket_count(); at += 1) {
    if (sessions == 0 || socket_fds[at] < 0) socket_fds[at] = open_socket(at);
    open += socket_fds[at] >= 0;
  }
  if (open > 0) sessions += 1;
  pthread_mutex_unlock(&mutex);
  return open > 0 ? SUCCESS : DRIVER_NOT_LOADED;
}

nvmlReturn_t nvmlShutdown(void) {
  OR_FORCED;
  pthread_mutex_lock(&mutex);
  if (sessions > 0 && --sessions == 0) {
    for (unsigned int at = 0; at < MAX_BOARDS; at += 1) {
      if (socket_fds[at] >= 0) close(socket_fds[at]);
      socket_fds[at] = -1;
    }
  }
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  OR_FORCED;
  return ask_text(NULL, "driver", version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
  OR_FORCED;
  return ask_text(NULL, "driver", version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
  OR_FORCED;
  *version = 12040;
  return SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
  OR_FORCED;
  *version = 12040;
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
  OR_FORCED;
  *count = board_count();
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
  OR_FORCED;
  if (index >= board_count() || index >= MAX_BOARDS) return INVALID_ARGUMENT;
  *device = &boards[index];
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  OR_FORCED;
  char own[96];
  nvmlReturn_t last = NOT_FOUND;
  for (unsigned int at = 0; at < socket_count(); at += 1) {
    nvmlReturn_t code = ask_text(&boards[at], "uuid", own, sizeof own);
    if (code != SUCCESS) last = code;
    if (code != SUCCESS || strcmp(uuid, own) != 0) continue;
    *device = &boards[at];
    return SUCCESS;
  }
  return last;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
  OR_FORCED;
  return known(device) ? ask_text(device, "name", name, length) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
  OR_FORCED;
  return known(device) ? ask_text(device, "uuid", uuid, length) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  memset(pci, 0, sizeof *pci);
  if ((unsigned int)(device - boards) < socket_count()) return ask_text(device, "pci", pci->busId, sizeof pci->busId);
  snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", (unsigned int)(device - boards)); /* strangers come first */
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *isMig) {
  OR_FORCED;
  *isMig = 0;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  *current = *pending = setting("NVML_STUB_MIG", 0);
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, int *mode) {
  OR_FORCED;
  *mode = (int)setting("NVML_STUB_VIRTUALIZATION", 0);
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  snprintf(version, length, "00.00.00.00.00");
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture) {
  OR_FORCED;
  *architecture = setting("NVML_STUB_ARCHITECTURE", 8);
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  OR_FORCED;
  unsigned int both = setting("NVML_STUB_COMPUTE_CAPABILITY", 89);
  *major = (int)both / 10;
  *minor = (int)both % 10;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *bits) {
  OR_FORCED;
  *bits = 384;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending) {
  OR_FORCED;
  *current = *pending = 1;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode) {
  OR_FORCED;
  return known(device) ? ask_u32(device, "read\n", "persistence", (unsigned int *)mode) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode) {
  OR_FORCED;
  *mode = 0;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
  OR_FORCED;
  *generation = 1;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width) {
  OR_FORCED;
  *width = 16;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
  OR_FORCED;
  *generation = 4;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width) {
  OR_FORCED;
  *width = 16;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, int api, int *restricted) {
  OR_FORCED;
  *restricted = 1;
  return known(device) && (api == 0 || api == 1) ? SUCCESS : INVALID_ARGUMENT;
}

/* ---- energy, power, temperature ---- */

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules) {
  OR_FORCED;
  return known(device) ? ask_u64(device, "energy\n", "energy_mj", millijoules) : INVALID_ARGUMENT;
}

/* The field ids that the stand-in knows, and where the simulated GPU has them. */
static const struct { unsigned int id; const char *name; } FIELDS[] = {
  { 74, "power_violation_ns" }, { 83, "energy_mj" }, { 185, "power_average_mw" }, { 186, "power_instant_mw" }, { 190, "enforced_mw" }, { 192, "limit_mw" },
};

/* Wall time less NVML_STUB_ENERGY_AGE_US, as a driver stamps a value that is so old; 0 without it. */
static long long energy_stamp_us(void) {
  const char *age = getenv("NVML_STUB_ENERGY_AGE_US");
  struct timeval now;
  if (age == NULL || gettimeofday(&now, NULL) != 0) return 0;
  return now.tv_sec * 1000000LL + now.tv_usec - atoll(age);
}

static void fill_field(nvmlFieldValue_t *value, const char *line) {
  const char *name = NULL;
  for (size_t at = 0; at < sizeof FIELDS / sizeof FIELDS[0]; at += 1) {
    if (FIELDS[at].id == value->fieldId) name = FIELDS[at].name;
  }
#ifdef OLD_DRIVER
  if (value->fieldId >= 185) name = NULL;
#endif
  value->nvmlReturn = name == NULL ? NOT_SUPPORTED : SUCCESS;
  value->timestamp = value->fieldId == 83 ? energy_stamp_us() : 0;
  value->valueType = value->fieldId < 185 ? 3 : 1;
  value->value.ull = name == NULL ? 0 : (unsigned long long)(number(line, name) + 0.5);
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
  OR_FORCED;
  char line[LINE];
  if (!known(device)) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask(device, "read\n", line);
  for (int at = 0; code == SUCCESS && at < count; at += 1) fill_field(&values[at], line);
  return code;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
  OR_FORCED;
  return known(device) && sensor == 0 ? ask_u32(device, "read\n", "temp_c", celsius) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int type, unsigned int *celsius) {
  OR_FORCED;
  *celsius = type == 0 ? 95 : 92;
  return known(device) && type >= 0 && type <= 3 ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw) {
  OR_FORCED;
  return known(device) ? ask_u32(device, "read\n", "power_average_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *mw) {
  OR_FORCED;
  return known(device) ? ask_u32(device, "read\n", "limit_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *mw) {
  OR_FORCED;
  return known(device) ? ask_u32(device, "read\n", "enforced_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *mw) {
  OR_FORCED;
  return known(device) ? ask_u32(device, "info\n", "default_mw", mw) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask_u32(device, "info\n", "min_mw", min);
  return code == SUCCESS ? ask_u32(device, "info\n", "max_mw", max) : code;
}

/* ---- clocks, reasons, utilisation, memory, processes ---- */

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32(device, "read\n", type == 2 ? "mem_mhz" : "sm_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32(device, "info\n", type == 2 ? "mem_mhz" : "f_max", mhz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, int type, int id, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 2 || id < 0 || id > 3) return INVALID_ARGUMENT;
  if (id == 0) return ask_u32(device, "read\n", type == 2 ? "mem_mhz" : "sm_mhz", mhz);
  if (id == 1) return ask_u32(device, "read\n", type == 2 ? "app_mem_mhz" : "app_sm_mhz", mhz);
  return ask_u32(device, "info\n", type == 2 ? "mem_mhz" : "f_max", mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, int type, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32(device, "read\n", type == 2 ? "app_mem_mhz" : "app_sm_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, int type, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 2) return INVALID_ARGUMENT;
  return ask_u32(device, "read\n", type == 2 ? "mem_mhz" : "boost_max_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state) {
  OR_FORCED;
  *state = 0;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  unsigned int room = *count;
  *count = 1;
  return mhz == NULL || room < 1 ? INSUFFICIENT_SIZE : ask_u32(device, "info\n", "mem_mhz", mhz);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz, unsigned int *count,
                                                  unsigned int *mhz) {
  OR_FORCED;
  char line[LINE];
  if (!known(device)) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask(device, "info\n", line);
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
  OR_FORCED;
  return known(device) ? ask_u64(device, "read\n", "reasons", mask) : INVALID_ARGUMENT;
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long *mask) {
#else
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *mask) {
#endif
  OR_FORCED;
  *mask = 0x1ff;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  rates->memory = 0;
  return ask_u32(device, "read\n", "util_pct", &rates->gpu);
}

#ifdef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
#else
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
  if (memory->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
#endif
  OR_FORCED;
  if (!known(device)) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask_u64(device, "info\n", "mem_total_bytes", &memory->total);
  if (code == SUCCESS) code = ask_u64(device, "read\n", "mem_used_bytes", &memory->used);
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
  OR_FORCED;
  char line[LINE], text[LINE];
  if (!known(device)) return INVALID_ARGUMENT;
  nvmlReturn_t code = ask(device, "processes\n", line);
  if (code != SUCCESS) return code;
  unsigned int room = out == NULL ? 0 : *count;
  *count = field(line, "pids", text, sizeof text) ? parse_processes(text, out, room) : 0;
  return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out) {
  OR_FORCED;
  (void)out;
  *count = 0;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}
#endif

/* ---- faults ---- */

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter, unsigned long long *count) {
  OR_FORCED;
  if (!known(device) || type < 0 || type > 1 || counter < 0 || counter > 1) return INVALID_ARGUMENT;
  *count = 0;
  return type == 1 ? ask_u64(device, "ecc\n", "uncorrected", count) : SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
  OR_FORCED;
  *types = 0x1f;
  return known(device) ? SUCCESS : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
  OR_FORCED;
  *set = calloc(1, sizeof **set);
  return *set == NULL ? UNKNOWN : SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  OR_FORCED;
  free(set);
  return SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  OR_FORCED;
  if (!known(device) || set == NULL || (types & ~0x1fULL) != 0) return INVALID_ARGUMENT;
  set->types = types;
  set->device = device;
  return ask_u64(device, "events\n", "last", &set->after);
}

/* Gives one event a call, the oldest first; waits at most `timeout_ms`. */
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
  OR_FORCED;
  char request[64], line[LINE], faults[LINE];
  if (set == NULL || data == NULL) return INVALID_ARGUMENT;
  for (int tries = timeout_ms == 0 ? 1 : 2; tries > 0; tries -= 1) {
    snprintf(request, sizeof request, "events after=%llu\n", set->after);
    nvmlReturn_t code = ask(set->device, request, line);
    if (code != SUCCESS) return code;
    if (field(line, "faults", faults, sizeof faults) && faults[0] != '\0') {
      int is_xid = strncmp(faults, "xid:", 4) == 0;
      memset(data, 0xff, sizeof *data);
      data->device = set->device;
      data->eventType = is_xid ? 0x8 : 0x2;
      data->eventData = is_xid ? strtoull(faults + 4, NULL, 10) : 0;
      set->after += 1;
      return SUCCESS;
    }
    if (tries > 1) usleep(timeout_ms * 1000);
  }
  return TIMEOUT;
}

/* ---- levers ---- */

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int mw) {
  OR_FORCED;
  char request[64], line[LINE];
  snprintf(request, sizeof request, "set_limit mw=%u\n", mw);
  return known(device) ? ask(device, request, line) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int min, unsigned int max) {
  OR_FORCED;
  char request[64], line[LINE];
  snprintf(request, sizeof request, "lock min_mhz=%u max_mhz=%u\n", min, max);
  return known(device) ? ask(device, request, line) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  OR_FORCED;
  char line[LINE];
  return known(device) ? ask(device, "reset_lock\n", line) : INVALID_ARGUMENT;
}
