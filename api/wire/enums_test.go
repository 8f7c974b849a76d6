package wire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"netsplit/model"
)

// TestTheFaultsOfASearchAreThoseOfTheModel: a kind that the model gains is offered.
func TestTheFaultsOfASearchAreThoseOfTheModel(t *testing.T) {
	want := strings.ReplaceAll(strings.Trim(fmt.Sprint(model.SearchedFaults()), "[]"), " ", ",")
	for _, of := range []reflect.Type{reflect.TypeFor[CampaignSpec](), reflect.TypeFor[PointsQuery]()} {
		f, ok := of.FieldByName("Faults")
		if got := f.Tag.Get("enum"); !ok || got != want || f.Tag.Get("maxItems") != fmt.Sprint(len(model.SearchedFaults())) {
			t.Errorf("the enum of faults of %s is %s, want %s", of, got, want)
		}
	}
	f, _ := reflect.TypeFor[MapOutcome]().FieldByName("Kind")
	if want, got := strings.ReplaceAll(strings.Trim(fmt.Sprint(model.MetKinds()), "[]"), " ", ","), f.Tag.Get("enum"); got != want {
		t.Errorf("the enum of kinds of a partition map is %s, want %s", got, want)
	}
}
