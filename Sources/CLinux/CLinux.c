#include "CLinux.h"

// Not inlined: the caller keeps nothing in these registers across a call, because a function may change all of them.
// The exception is the lower halves of v8 to v15 on 64-bit ARM, which no copy uses.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void clear_avx512(void) {
  __asm__ volatile(
      "vzeroall\n\t"
      "vpxorq %%zmm16, %%zmm16, %%zmm16\n\t"
      "vpxorq %%zmm17, %%zmm17, %%zmm17\n\t"
      "vpxorq %%zmm18, %%zmm18, %%zmm18\n\t"
      "vpxorq %%zmm19, %%zmm19, %%zmm19\n\t"
      "vpxorq %%zmm20, %%zmm20, %%zmm20\n\t"
      "vpxorq %%zmm21, %%zmm21, %%zmm21\n\t"
      "vpxorq %%zmm22, %%zmm22, %%zmm22\n\t"
      "vpxorq %%zmm23, %%zmm23, %%zmm23\n\t"
      "vpxorq %%zmm24, %%zmm24, %%zmm24\n\t"
      "vpxorq %%zmm25, %%zmm25, %%zmm25\n\t"
      "vpxorq %%zmm26, %%zmm26, %%zmm26\n\t"
      "vpxorq %%zmm27, %%zmm27, %%zmm27\n\t"
      "vpxorq %%zmm28, %%zmm28, %%zmm28\n\t"
      "vpxorq %%zmm29, %%zmm29, %%zmm29\n\t"
      "vpxorq %%zmm30, %%zmm30, %%zmm30\n\t"
      "vpxorq %%zmm31, %%zmm31, %%zmm31" ::
          : "memory");
}

__attribute__((target("avx"))) static void clear_avx(void) { __asm__ volatile("vzeroall" ::: "memory"); }

static void clear_sse(void) {
  __asm__ volatile(
      "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\tpxor %%xmm3, %%xmm3\n\t"
      "pxor %%xmm4, %%xmm4\n\tpxor %%xmm5, %%xmm5\n\tpxor %%xmm6, %%xmm6\n\tpxor %%xmm7, %%xmm7\n\t"
      "pxor %%xmm8, %%xmm8\n\tpxor %%xmm9, %%xmm9\n\tpxor %%xmm10, %%xmm10\n\tpxor %%xmm11, %%xmm11\n\t"
      "pxor %%xmm12, %%xmm12\n\tpxor %%xmm13, %%xmm13\n\tpxor %%xmm14, %%xmm14\n\tpxor %%xmm15, %%xmm15" ::
          : "memory");
}

__attribute__((noinline)) void coffer_clear_vector_registers(void) {
  if (__builtin_cpu_supports("avx512f")) {
    clear_avx512();
  } else if (__builtin_cpu_supports("avx")) {
    clear_avx();
  } else {
    clear_sse();
  }
}
#elif defined(__aarch64__)
__attribute__((noinline)) void coffer_clear_vector_registers(void) {
  __asm__ volatile(
      "movi v0.2d, #0\n\tmovi v1.2d, #0\n\tmovi v2.2d, #0\n\tmovi v3.2d, #0\n\t"
      "movi v4.2d, #0\n\tmovi v5.2d, #0\n\tmovi v6.2d, #0\n\tmovi v7.2d, #0\n\t"
      "movi v16.2d, #0\n\tmovi v17.2d, #0\n\tmovi v18.2d, #0\n\tmovi v19.2d, #0\n\t"
      "movi v20.2d, #0\n\tmovi v21.2d, #0\n\tmovi v22.2d, #0\n\tmovi v23.2d, #0\n\t"
      "movi v24.2d, #0\n\tmovi v25.2d, #0\n\tmovi v26.2d, #0\n\tmovi v27.2d, #0\n\t"
      "movi v28.2d, #0\n\tmovi v29.2d, #0\n\tmovi v30.2d, #0\n\tmovi v31.2d, #0" ::
          : "memory");
}
#else
__attribute__((noinline)) void coffer_clear_vector_registers(void) {}
#endif
