// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

#include "go_asm.h"
#include "textflag.h"

// func spin(s *spinState)
//
// RDTSC without a fence, as sysjitter reads it: two readings of one CPU never change places, and a fence would
// make the loop, and so the shortest interruption that it can see, twice as long.
TEXT ·spin(SB), NOSPLIT, $0-8
	MOVQ s+0(FP), DI
	MOVQ spinState_deadline(DI), R8
	MOVQ spinState_threshold(DI), R9
	MOVQ spinState_gaps(DI), R10
	MOVQ spinState_capacity(DI), R11
	XORQ R12, R12             // interruptions
	XORQ R13, R13             // loops
	MOVQ $0x7fffffffffffffff, BX // the shortest gap
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, spinState_begin(DI)
	MOVQ AX, SI               // the last reading

loop:
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, CX
	SUBQ SI, CX
	INCQ R13
	CMPQ CX, BX
	CMOVQLT CX, BX
	CMPQ CX, R9
	JLT  next
	CMPQ R12, R11
	JCC  full
	MOVQ SI, 0(R10)
	MOVQ CX, 8(R10)
	ADDQ $16, R10

full:
	INCQ R12

next:
	MOVQ AX, SI
	CMPQ AX, R8
	JCS  loop
	MOVQ AX, spinState_finish(DI)
	MOVQ R12, spinState_interruptions(DI)
	MOVQ R13, spinState_loops(DI)
	MOVQ BX, spinState_shortest(DI)
	RET

// func readCounter() uint64
TEXT ·readCounter(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
