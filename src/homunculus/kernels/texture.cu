// A mipmapped texture of RGBA bytes, one layer per image: laid from RGB, halved level by level, sampled into patches.
// Plain C at the border: raw pointers, and nullptr or the reason of a failure as the answer. See texture.py.
//
// CUDA halves the size of a level downwards, the pyramid upwards. So level 0 is stored padded to a multiple of
// 2^(levels - 1), and every level repeats its own edge in the RIM texels beyond it, as far as filters reach.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <new>

constexpr int RIM = 2;
constexpr int MAX_LEVELS = 16;  // a side has at most 2^15 texels
constexpr int THREADS = 256;

struct Size {
    int h, w;
};

struct Mipmap {
    int device, images, levels;
    Size size[MAX_LEVELS];    // of what each level holds
    Size padded[MAX_LEVELS];  // of what is stored
    cudaMipmappedArray_t array;
    cudaSurfaceObject_t surface[MAX_LEVELS];
    cudaTextureObject_t points, blend;  // all levels, in shares of the padded side: nearest; trilinear
};

struct Strides {
    long long image, channel, row, column;
};

struct Numbers {  // of whatever type torch has them in
    const void* data;
    int kind;

    __device__ double at(long long i) const {
        switch (kind) {
            case 0: return static_cast<const double*>(data)[i];
            case 1: return static_cast<const float*>(data)[i];
            case 2: return static_cast<double>(static_cast<const long long*>(data)[i]);
            default: return static_cast<const int*>(data)[i];
        }
    }
};

struct Request {                        // mirrored in texture.py
    void* out;                          // [images, count, 3, cell, cell]
    const bool* mask;                   // [images, count] or nullptr
    const long long* sizes;             // height and width of each image, or nullptr
    long long sizes_row, sizes_column;  // their strides
    Numbers boxes, levels;              // [images, count, 4] and [images, count]
    int count, cell, kind;              // kind of out: bytes, half, bfloat16, float
    float mean[3], std[3];
};

namespace {

// ---- levels ------------------------------------------------------------------------------------------------------

__global__ void write_level(const unsigned char* pixels, Strides by, cudaSurfaceObject_t level, Size size,
                            Size written) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, b = blockIdx.z;
    if (x >= written.w || y >= written.h) return;
    const unsigned char* red = pixels + b * by.image + min(y, size.h - 1) * by.row + min(x, size.w - 1) * by.column;
    surf2DLayeredwrite(make_uchar4(red[0], red[by.channel], red[2 * by.channel], 255), level, 4 * x, y, b);
}

// A bilinear fetch in 16ths of a grey level. With weights of quarters that is a whole number, so rounding to it takes
// away the error of what the hardware returns (as a share of 255, in at least 12 bits) and the sums below are exact. A
// place in shares of a side is off by less than 1/512 of a texel, where weights would round to others. (A texture of
// one level alone would take places in texels, but finds its second layer elsewhere than surfaces and mipmaps do.)
__device__ int3 sixteenths(cudaTextureObject_t blend, float u, float v, int b, float level) {
    const float4 found = tex2DLayeredLod<float4>(blend, u, v, b, level);
    return make_int3(__float2int_rn(found.x * 4080.f), __float2int_rn(found.y * 4080.f),
                     __float2int_rn(found.z * 4080.f));
}

// Pixels 2x - 1 .. 2x + 2 weighed (1, 3, 3, 1) / 8 are the mean of two linear fetches, 3/4 off their common centre.
__global__ void halve(cudaTextureObject_t blend, cudaSurfaceObject_t next, float level, Size size, Size written,
                      Size padded) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, b = blockIdx.z;
    if (x >= written.w || y >= written.h) return;
    const float across = 2 * min(x, size.w - 1) + 1, along = 2 * min(y, size.h - 1) + 1;
    const float left = (across - 0.75f) / padded.w, right = (across + 0.75f) / padded.w;
    const float up = (along - 0.75f) / padded.h, down = (along + 0.75f) / padded.h;
    const int3 one = sixteenths(blend, left, up, b, level), two = sixteenths(blend, right, up, b, level);
    const int3 three = sixteenths(blend, left, down, b, level), four = sixteenths(blend, right, down, b, level);
    const int red = one.x + two.x + three.x + four.x, green = one.y + two.y + three.y + four.y;
    const int blue = one.z + two.z + three.z + four.z;
    surf2DLayeredwrite(make_uchar4((red + 32) >> 6, (green + 32) >> 6, (blue + 32) >> 6, 255), next, 4 * x, y, b);
}

__global__ void read_level(cudaSurfaceObject_t level, unsigned char* out, Size size) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, b = blockIdx.z;
    if (x >= size.w || y >= size.h) return;
    const uchar4 found = surf2DLayeredread<uchar4>(level, 4 * x, y, b);
    const long long plane = static_cast<long long>(size.h) * size.w;
    unsigned char* red = out + 3 * b * plane + static_cast<long long>(y) * size.w + x;
    red[0] = found.x, red[plane] = found.y, red[2 * plane] = found.z;
}

// ---- patches -----------------------------------------------------------------------------------------------------

struct Patch {
    float x, y;           // corner, in pixels of its level
    float right, bottom;  // last column and row of the image at that level
    float scale, level;
    bool valid, on_grid;  // on_grid: its pixels are texels of one level
};

__device__ double snapped(double x) {
    const double whole = rint(x);
    return fabs(x - whole) < 1e-6 ? whole : x;
}

__device__ Patch patch_of(const Request& request, Size size, int b, long long place) {
    Patch patch;
    const double level = request.levels.at(place);
    const bool even = level == rint(level);
    const double scale = even ? ldexp(1.0, static_cast<int>(level)) : exp2(level);
    const double x = snapped(request.boxes.at(4 * place) / scale), y = snapped(request.boxes.at(4 * place + 1) / scale);
    const long long* own = request.sizes ? request.sizes + b * request.sizes_row : nullptr;
    const double h = own ? own[0] : size.h, w = own ? own[request.sizes_column] : size.w;
    patch.x = static_cast<float>(x), patch.y = static_cast<float>(y);
    patch.right = static_cast<float>(ceil(w / scale - 1e-6) - 1);
    patch.bottom = static_cast<float>(ceil(h / scale - 1e-6) - 1);
    patch.scale = static_cast<float>(scale), patch.level = static_cast<float>(level);
    patch.valid = !request.mask || request.mask[place];
    patch.on_grid = even && x == rint(x) && y == rint(y);
    return patch;
}

__device__ void put(unsigned char* out, float value) { *out = static_cast<unsigned char>(value); }
__device__ void put(float* out, float value) { *out = value; }
__device__ void put(__half* out, float value) { *out = __float2half(value); }
__device__ void put(__nv_bfloat16* out, float value) { *out = __float2bfloat16(value); }

// Grey levels as they are stored: rounded half up, or in the colours that a model knows.
template <typename Out>
__device__ void finish(Out* out, float value, float mean, float std) {
    put(out, sizeof(Out) == 1 ? value + 0.5f : (value / 255.f - mean) / std);
}

__device__ float3 fetch(const Patch& patch, cudaTextureObject_t points, cudaTextureObject_t blend, float u, float v,
                        int b) {
    if (patch.on_grid) {
        const uchar4 found = tex2DLayeredLod<uchar4>(points, u, v, b, patch.level);
        return make_float3(found.x, found.y, found.z);
    }
    const float4 found = tex2DLayeredLod<float4>(blend, u, v, b, patch.level);
    return make_float3(255.f * found.x, 255.f * found.y, 255.f * found.z);
}

// One block per patch; lanes lie along a patch's rows, whose memory they share.
template <typename Out>
__global__ void sample(Request request, cudaTextureObject_t points, cudaTextureObject_t blend, Size size, Size padded) {
    __shared__ Patch patch;
    const int b = blockIdx.y, cell = request.cell;
    const long long place = static_cast<long long>(b) * request.count + blockIdx.x, area = cell * cell;
    if (threadIdx.x == 0 && threadIdx.y == 0) patch = patch_of(request, size, b, place);
    __syncthreads();
    Out* out = static_cast<Out*>(request.out) + 3 * area * place;
    for (int y = threadIdx.y; y < cell; y += blockDim.y) {
        const float v = (fminf(patch.y + y, patch.bottom) + 0.5f) * patch.scale / padded.h;
        for (int x = threadIdx.x; x < cell; x += blockDim.x) {
            const float u = (fminf(patch.x + x, patch.right) + 0.5f) * patch.scale / padded.w;
            Out* red = out + y * cell + x;
            if (patch.valid) {
                const float3 found = fetch(patch, points, blend, u, v, b);
                finish(red, found.x, request.mean[0], request.std[0]);
                finish(red + area, found.y, request.mean[1], request.std[1]);
                finish(red + 2 * area, found.z, request.mean[2], request.std[2]);
            } else {
                red[0] = red[area] = red[2 * area] = Out(0);
            }
        }
    }
}

// ---- the host's side ---------------------------------------------------------------------------------------------

dim3 blocks(Size size, int images) { return dim3((size.w + 31) / 32, (size.h + 7) / 8, images); }

Size with_rim(const Mipmap& mipmap, int level) {
    const Size size = mipmap.size[level], padded = mipmap.padded[level];
    return {size.h + RIM < padded.h ? size.h + RIM : padded.h, size.w + RIM < padded.w ? size.w + RIM : padded.w};
}

// A kernel that is first met while a graph is captured could not be loaded then.
cudaError_t load_kernels() {
    const void* kernels[] = {(const void*)write_level, (const void*)halve, (const void*)read_level,
                             (const void*)sample<unsigned char>, (const void*)sample<__half>,
                             (const void*)sample<__nv_bfloat16>, (const void*)sample<float>};
    cudaFuncAttributes unused;
    for (const void* kernel : kernels)
        if (cudaError_t error = cudaFuncGetAttributes(&unused, kernel)) return error;
    return cudaSuccess;
}

cudaTextureDesc texture_desc(bool linear, int levels) {
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = cudaAddressModeClamp;
    desc.filterMode = desc.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = linear ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    desc.normalizedCoords = true;
    desc.maxMipmapLevelClamp = static_cast<float>(levels - 1);
    return desc;
}

cudaError_t open_level(Mipmap& mipmap, int level) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    if (cudaError_t error = cudaGetMipmappedArrayLevel(&resource.res.array.array, mipmap.array, level)) return error;
    return cudaCreateSurfaceObject(&mipmap.surface[level], &resource);
}

cudaError_t open_all(Mipmap& mipmap) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap.array;
    const cudaTextureDesc nearest = texture_desc(false, mipmap.levels), trilinear = texture_desc(true, mipmap.levels);
    if (cudaError_t error = cudaCreateTextureObject(&mipmap.points, &resource, &nearest, nullptr)) return error;
    return cudaCreateTextureObject(&mipmap.blend, &resource, &trilinear, nullptr);
}

cudaError_t allocate(Mipmap& mipmap) {
    const cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
    const cudaExtent extent = make_cudaExtent(mipmap.padded[0].w, mipmap.padded[0].h, mipmap.images);
    const unsigned flags = cudaArrayLayered | cudaArraySurfaceLoadStore;
    if (cudaError_t error = cudaMallocMipmappedArray(&mipmap.array, &bytes, extent, mipmap.levels, flags)) return error;
    for (int level = 0; level < mipmap.levels; level++)
        if (cudaError_t error = open_level(mipmap, level)) return error;
    if (cudaError_t error = open_all(mipmap)) return error;
    return load_kernels();
}

void release(Mipmap* mipmap) {
    for (int level = 0; level < mipmap->levels; level++)
        if (mipmap->surface[level]) cudaDestroySurfaceObject(mipmap->surface[level]);
    if (mipmap->points) cudaDestroyTextureObject(mipmap->points);
    if (mipmap->blend) cudaDestroyTextureObject(mipmap->blend);
    if (mipmap->array) cudaFreeMipmappedArray(mipmap->array);
    delete mipmap;
}

class DeviceGuard {  // and back again: torch keeps count of the current device itself
    int before = -1;

public:
    cudaError_t error;

    explicit DeviceGuard(int device) {
        error = cudaGetDevice(&before);
        if (error || before == device) before = -1;
        if (before >= 0) error = cudaSetDevice(device);
    }
    ~DeviceGuard() {
        if (before >= 0) cudaSetDevice(before);
    }
};

const char* message_of(cudaError_t error) { return error ? cudaGetErrorString(error) : nullptr; }

template <typename Out>
void launch(const Mipmap& mipmap, const Request& request, cudaStream_t stream) {
    const int across = request.cell < THREADS ? request.cell : THREADS;
    sample<Out><<<dim3(request.count, mipmap.images), dim3(across, THREADS / across), 0, stream>>>(
        request, mipmap.points, mipmap.blend, mipmap.size[0], mipmap.padded[0]);
}

}  // namespace

extern "C" {

int texture_request_size() { return sizeof(Request); }  // so that texture.py can tell that it mirrors the same

const char* texture_create(int device, int images, int h, int w, int levels, Mipmap** out) {
    if (levels < 1 || levels > MAX_LEVELS) return "too many levels";
    const DeviceGuard guard(device);
    if (guard.error) return message_of(guard.error);
    Mipmap* mipmap = new (std::nothrow) Mipmap();
    if (!mipmap) return "out of memory";
    mipmap->device = device, mipmap->images = images, mipmap->levels = levels;
    for (int level = 0; level < levels; level++) {
        const int above = levels - 1 - level;  // sides are padded to multiples of 2^above
        mipmap->size[level] = {h, w};
        mipmap->padded[level] = {(h + (1 << above) - 1) >> above << above, (w + (1 << above) - 1) >> above << above};
        h = (h + 1) / 2, w = (w + 1) / 2;
    }
    const cudaError_t error = allocate(*mipmap);
    if (error) {
        release(mipmap);
        cudaGetLastError();  // a failed allocation must not be met again by the next launch
    } else {
        *out = mipmap;
    }
    return message_of(error);
}

const char* texture_free(Mipmap* mipmap) {
    const DeviceGuard guard(mipmap->device);
    if (guard.error) return message_of(guard.error);
    if (cudaError_t error = cudaDeviceSynchronize()) return message_of(error);  // kernels may still read it
    release(mipmap);
    return message_of(cudaGetLastError());
}

const char* texture_fill(const Mipmap* mipmap, const unsigned char* pixels, Strides by, cudaStream_t stream) {
    const DeviceGuard guard(mipmap->device);
    if (guard.error) return message_of(guard.error);
    const dim3 threads(32, 8);
    Size written = with_rim(*mipmap, 0);
    write_level<<<blocks(written, mipmap->images), threads, 0, stream>>>(
        pixels, by, mipmap->surface[0], mipmap->size[0], written);
    for (int level = 1; level < mipmap->levels; level++) {
        written = with_rim(*mipmap, level);
        halve<<<blocks(written, mipmap->images), threads, 0, stream>>>(
            mipmap->blend, mipmap->surface[level], static_cast<float>(level - 1), mipmap->size[level], written,
            mipmap->padded[level - 1]);
    }
    return message_of(cudaGetLastError());
}

const char* texture_read(const Mipmap* mipmap, int level, unsigned char* out, cudaStream_t stream) {
    const DeviceGuard guard(mipmap->device);
    if (guard.error) return message_of(guard.error);
    const Size size = mipmap->size[level];
    read_level<<<blocks(size, mipmap->images), dim3(32, 8), 0, stream>>>(mipmap->surface[level], out, size);
    return message_of(cudaGetLastError());
}

const char* texture_sample(const Mipmap* mipmap, const Request* request, cudaStream_t stream) {
    const DeviceGuard guard(mipmap->device);
    if (guard.error) return message_of(guard.error);
    switch (request->kind) {
        case 0: launch<unsigned char>(*mipmap, *request, stream); break;
        case 1: launch<__half>(*mipmap, *request, stream); break;
        case 2: launch<__nv_bfloat16>(*mipmap, *request, stream); break;
        default: launch<float>(*mipmap, *request, stream);
    }
    return message_of(cudaGetLastError());
}
}
