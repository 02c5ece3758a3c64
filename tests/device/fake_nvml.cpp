// A management library of two GPUs on paper, under the name of NVIDIA's: what a process opens that finds it first.
#include <cstdio>
#include <cstring>

namespace {

struct Pci {
  char short_id[16];
  unsigned domain, bus, device, vendor, subsystem;
  char id[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct Use {
  unsigned processor, memory;
};

constexpr unsigned gpus = 2;
char handles[gpus];

unsigned index_of(const void* handle) { return static_cast<unsigned>(static_cast<const char*>(handle) - handles); }

}  // namespace

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle);
int nvmlDeviceGetName(void* handle, char* text, unsigned size);
int nvmlDeviceGetUUID(void* handle, char* text, unsigned size);
int nvmlDeviceGetPciInfo_v3(void* handle, Pci* pci);
int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory);
int nvmlDeviceGetUtilizationRates(void* handle, Use* use);
int nvmlSystemGetDriverVersion(char* text, unsigned size);

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= gpus) return 2;
  *handle = handles + index;
  return 0;
}
int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "Paper %u", index_of(handle));
  return 0;
}
int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%c0000000-1111-2222-3333-444444444444", index_of(handle) == 0 ? 'a' : 'b');
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* handle, Pci* pci) {
  std::memset(pci, 0, sizeof(Pci));
  std::snprintf(pci->id, sizeof(pci->id), "00000000:%02X:00.0", 0x3b + index_of(handle));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  *memory = {1ULL << 34, 1ULL << (33 - index_of(handle)), 0};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* handle, Use* use) {
  if (index_of(handle) == 1) return 3;  // not supported
  *use = {40, 5};
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.65.06");
  return 0;
}
}
