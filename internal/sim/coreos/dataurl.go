// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"fmt"

	"github.com/vincent-petithory/dataurl"
)

// DataURL encodes file content as Ignition wants it.
func DataURL(content []byte) string {
	return dataurl.New(content, "text/plain", "charset", "utf-8").String()
}

// decodeDataURL reads file content as Ignition would; an absent source is an empty file.
func decodeDataURL(source *string) ([]byte, error) {
	if source == nil || *source == "" {
		return nil, nil
	}
	decoded, err := dataurl.DecodeString(*source)
	if err != nil {
		return nil, fmt.Errorf("reading a data URL: %w", err)
	}
	return decoded.Data, nil
}
