package postgres

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgx encodes an array element by element through interfaces. A batch sends some 30,000 elements: the plans below write
// the arrays of the plain types straight into the message.

// quickArrays teaches a connection to encode the array types that batches use.
func quickArrays(conn *pgx.Conn) {
	m := conn.TypeMap()
	for _, oid := range []uint32{pgtype.Int2ArrayOID, pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID} {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: quickArray{t.Codec}})
		}
	}
}

// quickArray is pgx's codec but for the plain types.
type quickArray struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c quickArray) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []int16:
			if oid == pgtype.Int2ArrayOID {
				return planInt16{}
			}
		case []int32:
			if oid == pgtype.Int4ArrayOID {
				return planInt32{}
			}
		case []int64:
			if oid == pgtype.Int8ArrayOID {
				return planInt64{}
			}
		case []string:
			if oid == pgtype.TextArrayOID {
				return planText{}
			}
		case [][]byte:
			if oid == pgtype.ByteaArrayOID {
				return planBytes{}
			}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

const headBytes = 20

// arrayHead begins an array of one dimension without NULLs. nil is an empty array, not NULL.
func arrayHead(buf []byte, element uint32, n int) []byte {
	if n == 0 {
		buf = binary.BigEndian.AppendUint32(buf, 0)
		buf = binary.BigEndian.AppendUint32(buf, 0)
		return binary.BigEndian.AppendUint32(buf, element)
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	buf = binary.BigEndian.AppendUint32(buf, 0)
	buf = binary.BigEndian.AppendUint32(buf, element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n))
	return binary.BigEndian.AppendUint32(buf, 1)
}

type planInt16 struct{}

func (planInt16) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]int16)
	buf = arrayHead(slices.Grow(buf, headBytes+6*len(list)), pgtype.Int2OID, len(list))
	for _, v := range list {
		buf = binary.BigEndian.AppendUint32(buf, 2)
		buf = binary.BigEndian.AppendUint16(buf, uint16(v))
	}
	return buf, nil
}

type planInt32 struct{}

func (planInt32) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]int32)
	buf = arrayHead(slices.Grow(buf, headBytes+8*len(list)), pgtype.Int4OID, len(list))
	for _, v := range list {
		buf = binary.BigEndian.AppendUint32(buf, 4)
		buf = binary.BigEndian.AppendUint32(buf, uint32(v))
	}
	return buf, nil
}

type planInt64 struct{}

func (planInt64) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]int64)
	buf = arrayHead(slices.Grow(buf, headBytes+12*len(list)), pgtype.Int8OID, len(list))
	for _, v := range list {
		buf = binary.BigEndian.AppendUint32(buf, 8)
		buf = binary.BigEndian.AppendUint64(buf, uint64(v))
	}
	return buf, nil
}

type planText struct{}

func (planText) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]string)
	bytes := headBytes + 4*len(list)
	for _, v := range list {
		bytes += len(v)
	}
	buf = arrayHead(slices.Grow(buf, bytes), pgtype.TextOID, len(list))
	for _, v := range list {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
		buf = append(buf, v...)
	}
	return buf, nil
}

type planBytes struct{}

func (planBytes) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([][]byte)
	bytes := headBytes + 4*len(list)
	for _, v := range list {
		bytes += len(v)
	}
	buf = arrayHead(slices.Grow(buf, bytes), pgtype.ByteaOID, len(list))
	for _, v := range list {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
		buf = append(buf, v...)
	}
	return buf, nil
}
