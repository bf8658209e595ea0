// Counts over packed words of 32 bonds, for randomness_lanes.py.  A warp takes 32 words,
// turns them so that lane l holds bit l of all 32, and compares lanes by shuffles: a relation among
// lanes and its 31 rotations is one line.  COLUMN(a) is the column of lane l + a.
//
// SETS, NUM_SETS and TRIPLES are written by the program: one line a set of lanes.

typedef unsigned int u32;
typedef unsigned long long u64;
#define ALL 0xffffffffu
#define COLUMN(a) __shfl_sync(ALL, x, lane + (a))

__device__ u32 turned(u32 x) {
  int lane = threadIdx.x & 31;
  u32 mask = 0x0000ffffu;
#pragma unroll
  for (int j = 16; j; j >>= 1, mask ^= mask << j) {
    u32 y = __shfl_xor_sync(ALL, x, j);
    x = (lane & j) ? ((x & ~mask) | ((y & ~mask) >> j)) : ((x & mask) | ((y & mask) << j));
  }
  return x;
}

#define FOR_EACH_GROUP                                             \
  int lane = threadIdx.x & 31;                                     \
  u64 step = (u64)gridDim.x * (blockDim.x >> 5);                   \
  for (u64 group = (u64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); group < groups; group += step)

// single[l]: words with bit l; pairs[d - 1][l]: words with bits l and l + d, d = 1 ... 16.
extern "C" __global__ void pairs(const u32* words, u64 groups, u64* single, u64* found) {
  u32 one = 0, n[16] = {};
  FOR_EACH_GROUP {
    u32 x = turned(words[group * 32 + (threadIdx.x & 31)]);
    one += __popc(x);
#pragma unroll
    for (int d = 1; d <= 16; d++) n[d - 1] += __popc(x & COLUMN(d));
  }
  atomicAdd(&single[lane], (u64)one);
#pragma unroll
  for (int d = 0; d < 16; d++) atomicAdd(&found[d * 32 + lane], (u64)n[d]);
}

// found[k][l]: words with bits l, l + a and l + b of the k-th orbit (0, a, b).
extern "C" __global__ void __launch_bounds__(256) triples(const u32* words, u64 groups, u64* found) {
  u32 n[155] = {};
  FOR_EACH_GROUP {
    u32 x = turned(words[group * 32 + (threadIdx.x & 31)]);
    u32 y[32];
#pragma unroll
    for (int d = 0; d < 32; d++) y[d] = COLUMN(d);
    TRIPLES
  }
#pragma unroll
  for (int k = 0; k < 155; k++) atomicAdd(&found[k * 32 + lane], (u64)n[k]);
}

// found[s][l]: words with an odd number of bits among l + the lanes of set s.
extern "C" __global__ void parities(const u32* words, u64 groups, u64* found) {
  u32 n[NUM_SETS] = {};
  FOR_EACH_GROUP {
    u32 x = turned(words[group * 32 + (threadIdx.x & 31)]);
    SETS
  }
#pragma unroll
  for (int s = 0; s < NUM_SETS; s++) atomicAdd(&found[s * 32 + lane], (u64)n[s]);
}

// found[d][l]: word pairs with bit l of the first and bit l + d of the second; rows 32 and 33: first
// and second words with bit l.
extern "C" __global__ void across(const u32* first, const u32* second, u64 groups, u64* found) {
  u32 n[34] = {};
  FOR_EACH_GROUP {
    u32 own = turned(first[group * 32 + (threadIdx.x & 31)]);
    u32 x = turned(second[group * 32 + (threadIdx.x & 31)]);
#pragma unroll
    for (int d = 0; d < 32; d++) n[d] += __popc(own & COLUMN(d));
    n[32] += __popc(own);
    n[33] += __popc(x);
  }
#pragma unroll
  for (int d = 0; d < 34; d++) atomicAdd(&found[d * 32 + lane], (u64)n[d]);
}

// planes: digit planes one after the other, ``stride`` words each.  found[d][l]: words with an odd
// number of ones among the planes of mask ``own`` at bit l and those of ``others`` at bit l + d.
extern "C" __global__ void digit_parities(const u32* planes, u64 stride, u32 own, u32 others,
                                          u64 groups, u64* found) {
  u32 n[32] = {};
  FOR_EACH_GROUP {
    u64 word = group * 32 + (threadIdx.x & 31);
    u32 first = 0, second = 0;
    for (int k = 0; k < 7; k++) {
      if ((own | others) >> k & 1) {
        u32 digits = planes[k * stride + word];
        if (own >> k & 1) first ^= digits;
        if (others >> k & 1) second ^= digits;
      }
    }
    u32 left = turned(first), x = turned(second);
#pragma unroll
    for (int d = 0; d < 32; d++) n[d] += __popc(left ^ COLUMN(d));
  }
#pragma unroll
  for (int d = 0; d < 32; d++) atomicAdd(&found[d * 32 + lane], (u64)n[d]);
}

// Of every sample (a block each): its open bonds; of all words: the sum of squares of theirs.
extern "C" __global__ void counts(const u32* words, u32 per_sample, u64* opened, u64* squares) {
  u32 total = 0, square = 0;
  for (u32 w = threadIdx.x; w < per_sample; w += blockDim.x) {
    u32 c = __popc(words[(u64)blockIdx.x * per_sample + w]);
    total += c;
    square += c * c;
  }
  for (int j = 16; j; j >>= 1) {
    total += __shfl_xor_sync(ALL, total, j);
    square += __shfl_xor_sync(ALL, square, j);
  }
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&opened[blockIdx.x], (u64)total);
    atomicAdd(squares, (u64)square);
  }
}
