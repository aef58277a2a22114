package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Placeholders for columns without a value.
const (
	None    = "<none>"
	Unknown = "<unknown>"
	Pending = "<pending>"
)

// Condition returns the status of a condition, or "" if the condition is missing.
func Condition(conditions []gardencore.Condition, kind gardencore.ConditionType) gardencore.ConditionStatus {
	i := slices.IndexFunc(conditions, func(c gardencore.Condition) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return conditions[i].Status
}

// OrUnknown returns a value for a column, or the placeholder for an unknown one if it is empty.
func OrUnknown[S ~string](value S) any { return cmp.Or(string(value), Unknown) }

var metaDoc = metav1.ObjectMeta{}.SwaggerDoc()

// Age returns the column Age, for resources that do not print it last.
func Age[T Object]() Column[T] {
	return Column[T]{Name: "Age", Type: "date", Description: metaDoc["creationTimestamp"], Value: func(obj T) any {
		return metatable.ConvertToHumanReadableDateType(obj.GetCreationTimestamp())
	}}
}

// tableConvertor makes the tables that kubectl prints.
type tableConvertor[T Object] struct {
	resource fmt.Stringer
	columns  []Column[T]
}

func newTableConvertor[T Object](def *Definition[T]) tableConvertor[T] {
	name := Column[T]{Name: "Name", Description: metaDoc["name"], Value: func(obj T) any { return obj.GetName() }}
	columns := append([]Column[T]{name}, def.Columns...)
	if !slices.ContainsFunc(columns, func(c Column[T]) bool { return c.Name == "Age" }) {
		columns = append(columns, Age[T]())
	}
	return tableConvertor[T]{&def.Resource, columns}
}

func (c tableConvertor[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if m, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	if opt, ok := options.(*metav1.TableOptions); !ok || !opt.NoHeaders {
		table.ColumnDefinitions = c.header()
	}
	rows, err := metatable.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, _, _ string) ([]any, error) {
		typed, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("a %T is not one of %s", obj, c.resource)
		}
		cells := make([]any, 0, len(c.columns))
		for _, column := range c.columns {
			cells = append(cells, column.Value(typed))
		}
		return cells, nil
	})
	table.Rows = rows
	return table, err
}

func (c tableConvertor[T]) header() []metav1.TableColumnDefinition {
	header := make([]metav1.TableColumnDefinition, 0, len(c.columns))
	for _, column := range c.columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: column.Type, Description: column.Description}
		definition.Type = cmp.Or(definition.Type, "string")
		if column.Wide {
			definition.Priority = 1
		}
		header = append(header, definition)
	}
	header[0].Format = "name" // this column alone identifies the object
	return header
}
