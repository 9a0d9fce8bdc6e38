// CUDA's runtime on the emulated card: kernels and their launches. They come from the PTX that nvcc
// leaves in object files (--compress-mode=none).
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>

#include "emulated_gpu/runtime.h"

namespace sluice::emulated_gpu {
namespace {

struct Binary {
  std::string text;
  std::unique_ptr<Module> module;
};

struct Function {
  Binary* binary;
  std::string name;
};

struct Registry {
  std::mutex mutex;
  std::list<Binary> binaries;
  std::map<const void*, Function> functions;
};
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// The text for the newest architecture that the card has; empty where there is none.
std::string ptx_of(const std::byte* fat) {
  const auto at = [&]<typename T>(size_t i, T) {
    T out;
    std::memcpy(&out, fat + i, sizeof(T));
    return out;
  };
  std::string out;
  uint32_t best = 0;
  const size_t end = at(6, uint16_t{}) + at(8, uint64_t{});
  for (size_t i = at(6, uint16_t{}); i < end;) {
    const uint16_t kind = at(i, uint16_t{});
    const uint32_t header = at(i + 4, uint32_t{}), packed = at(i + 16, uint32_t{});
    const uint64_t n = at(i + 8, uint64_t{});
    const uint32_t architecture = at(i + 28, uint32_t{});
    if (kind == 1 && architecture <= static_cast<uint32_t>(card_size().capability) &&
        architecture >= best) {
      if (packed != 0) {
        std::fprintf(stderr, "emulated GPU: PTX is compressed; build with --compress-mode=none\n");
        std::abort();
      }
      best = architecture;
      out.assign(reinterpret_cast<const char*>(fat + i + header), n);
      out.resize(std::strlen(out.c_str()));
    }
    i += header + n;
  }
  return out;
}

const Kernel* kernel_of(const void* function) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.functions.find(function);
  if (found == r.functions.end()) return nullptr;
  Binary& b = *found->second.binary;
  if (b.text.empty() && !b.module) return nullptr;
  try {
    if (!b.module) b.module = std::make_unique<Module>(std::move(b.text));
    return b.module->find(found->second.name);
  } catch (const std::exception& e) {
    keep_card_fault(e.what());
    return nullptr;
  }
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream, unsigned cluster, bool overlaps) {
  const Kernel* const kernel = kernel_of(function);
  if (!kernel)
    return told(has_card_fault() ? cudaErrorInvalidPtx : cudaErrorNoKernelImageForDevice);
  if (kernel->static_bytes + shared_bytes > static_cast<size_t>(shared_per_block())) {
    return told(cudaErrorInvalidValue);
  }
  if (grid.x * grid.y * grid.z == 0) return told(cudaErrorInvalidConfiguration);
  LaunchOf l;
  l.kernel = kernel;
  l.grid = {grid.x, grid.y, grid.z};
  l.block = {block.x, block.y, block.z};
  l.cluster = cluster;
  l.dynamic_bytes = shared_bytes;
  l.overlaps = overlaps;
  l.params.resize(static_cast<size_t>(kernel->param_bytes));
  for (size_t i = 0; i < kernel->params.size(); ++i) {
    std::memcpy(l.params.data() + kernel->params[i].offset, args[i],
                static_cast<size_t>(kernel->params[i].n_bytes));
  }
  if (std::getenv("EMULATED_TRACE")) {
    std::fprintf(stderr, "%s: (%u, %u, %u) blocks of %u threads, %zu bytes\n", kernel->name.c_str(),
                 grid.x, grid.y, grid.z, block.x, shared_bytes);
  }
  stream_of(stream).give([l](EmulatedStream& s) { s.add({l, {}, {}}); });
  return told(cudaSuccess);
}

struct PushedConfiguration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<PushedConfiguration> pushed;

}  // namespace
}  // namespace sluice::emulated_gpu

using namespace sluice::emulated_gpu;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic, version;
    const std::byte* data;
    void* names;
  };
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.binaries.push_back({ptx_of(static_cast<Wrapper*>(wrapper)->data), nullptr});
  return reinterpret_cast<void**>(&r.binaries.back());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.functions[host] = {reinterpret_cast<Binary*>(binary), name};
}
void __cudaRegisterVar(void**, char*, char*, const char* name, int, size_t, int, int) {
  std::fprintf(stderr, "emulated GPU: the variable %s of a module is not known to the host here\n",
               name);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  pushed.push_back({grid, block, shared_bytes, static_cast<cudaStream_t>(stream)});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  const PushedConfiguration c = pushed.back();
  pushed.pop_back();
  *grid = c.grid, *block = c.block, *shared_bytes = c.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream) {
  return launch(kernel, grid, block, args, shared_bytes, stream, 1, false);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch(function, grid, block, args, shared_bytes, stream, 1, false);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* function, void** args) {
  unsigned cluster = 1;
  bool overlaps = false;
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
      cluster = c->attrs[i].val.clusterDim.x;
    if (c->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization)
      overlaps = c->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  }
  return launch(function, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, cluster,
                overlaps);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* function) {
  *a = {};
  const Kernel* const kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorNoKernelImageForDevice);
  a->ptxVersion = a->binaryVersion = card_size().capability;
  a->maxThreadsPerBlock = kernel->max_threads;
  a->sharedSizeBytes = kernel->static_bytes;
  return told(cudaSuccess);
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute what, int value) {
  const Kernel* const kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorNoKernelImageForDevice);
  const bool fits = what != cudaFuncAttributeMaxDynamicSharedMemorySize ||
                    static_cast<int>(kernel->static_bytes) + value <= shared_per_block();
  return told(fits ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
