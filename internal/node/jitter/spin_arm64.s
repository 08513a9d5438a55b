// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

#include "go_asm.h"
#include "textflag.h"

// func spin(s *spinState)
//
// CNTVCT_EL0 is the virtual counter, which Linux lets programs read. It counts at CNTFRQ_EL0, which is 1 GHz from
// Armv8.6 on and as little as 25 MHz before: there a gap is known to 40 ns.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVD s+0(FP), R0
	MOVD spinState_deadline(R0), R1
	MOVD spinState_threshold(R0), R2
	MOVD spinState_gaps(R0), R3
	MOVD spinState_capacity(R0), R4
	MOVD $0, R5                  // interruptions
	MOVD $0, R6                  // loops
	MOVD $0x7fffffffffffffff, R7 // the shortest gap
	ISB  $15
	MRS  CNTVCT_EL0, R8          // the last reading
	MOVD R8, spinState_begin(R0)

loop:
	MRS  CNTVCT_EL0, R9
	SUB  R8, R9, R10
	ADD  $1, R6
	CMP  R7, R10
	CSEL LT, R10, R7, R7
	CMP  R2, R10
	BLT  next
	CMP  R4, R5
	BHS  full
	MOVD R8, 0(R3)
	MOVD R10, 8(R3)
	ADD  $16, R3

full:
	ADD $1, R5

next:
	MOVD R9, R8
	CMP  R1, R9
	BLO  loop
	MOVD R9, spinState_finish(R0)
	MOVD R5, spinState_interruptions(R0)
	MOVD R6, spinState_loops(R0)
	MOVD R7, spinState_shortest(R0)
	RET

// func readCounter() uint64
TEXT ·readCounter(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func counterFrequency() uint64
TEXT ·counterFrequency(SB), NOSPLIT, $0-8
	MRS  CNTFRQ_EL0, R0
	MOVD R0, ret+0(FP)
	RET
