#pragma once
#include <stdbool.h>

// The number of the mutation that is switched on, or 0.
extern int coffer_mutant_on;
// One byte for each mutation: 1 if the program came to it.
extern unsigned char *coffer_mutants_reached;

static inline bool coffer_mutant(int number) {
  if (number < 0) return false;
  coffer_mutants_reached[number] = 1;
  return number == coffer_mutant_on;
}
