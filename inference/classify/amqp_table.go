package classify

import (
	"fmt"
	"strings"
)

// amqpBasic is the number of class basic.
const amqpBasic = 60

// amqpArg is an argument of a method: its name, "" if it is no field, and its kind: b bit,
// o octet, h short, l long, L long long, s short string, S long string or table.
type amqpArg struct {
	name string
	kind byte
}

type amqpMethod struct {
	name string
	args []amqpArg
}

// amqpProperties are those of class basic, in the order of their flags.
var amqpProperties = amqpArgs("s s S delivery_mode:o o correlation_id:s s s message_id:s L s s s")

// amqpArgs reads a layout: words KIND or NAME:KIND.
func amqpArgs(layout string) (out []amqpArg) {
	for _, w := range strings.Fields(layout) {
		name, kind, named := strings.Cut(w, ":")
		if !named {
			name, kind = "", w
		}
		out = append(out, amqpArg{name, kind[0]})
	}
	return out
}

// amqpMethods are the methods of AMQP 0-9-1 and of RabbitMQ's extensions (amqp-rabbitmq-0.9.1.json;
// basic.credit: module rabbit_framing_amqp_0_9_1 of 3.10), by class and method, with the arguments up to the last one
// that is a field.
var amqpMethods = func() map[uint32]amqpMethod {
	out := map[uint32]amqpMethod{}
	for _, l := range strings.Split(strings.TrimSpace(amqpLayouts), "\n") {
		var class, method uint32
		var name string
		if n, _ := fmt.Sscanf(l, "%d.%d %s", &class, &method, &name); n < 3 {
			panic("amqpLayouts: " + l)
		}
		_, layout, _ := strings.Cut(l, name)
		out[class<<16|method] = amqpMethod{name, amqpArgs(layout)}
	}
	return out
}()

const amqpLayouts = `
10.10 connection.start
10.11 connection.start-ok
10.20 connection.secure
10.21 connection.secure-ok
10.30 connection.tune channel_max:h frame_max:l heartbeat:h
10.31 connection.tune-ok channel_max:h frame_max:l heartbeat:h
10.40 connection.open vhost:s
10.41 connection.open-ok
10.50 connection.close reply_code:h reply_text:s class:h method:h
10.51 connection.close-ok
10.60 connection.blocked reason:s
10.61 connection.unblocked
10.70 connection.update-secret
10.71 connection.update-secret-ok
20.10 channel.open
20.11 channel.open-ok
20.20 channel.flow active:b
20.21 channel.flow-ok active:b
20.40 channel.close reply_code:h reply_text:s class:h method:h
20.41 channel.close-ok
30.10 access.request
30.11 access.request-ok
40.10 exchange.declare h exchange:s kind:s passive:b durable:b
40.11 exchange.declare-ok
40.20 exchange.delete h exchange:s
40.21 exchange.delete-ok
40.30 exchange.bind h destination:s source:s routing_key:s
40.31 exchange.bind-ok
40.40 exchange.unbind h destination:s source:s routing_key:s
40.51 exchange.unbind-ok
50.10 queue.declare h queue:s passive:b durable:b exclusive:b auto_delete:b
50.11 queue.declare-ok queue:s message_count:l consumer_count:l
50.20 queue.bind h queue:s exchange:s routing_key:s
50.21 queue.bind-ok
50.30 queue.purge h queue:s
50.31 queue.purge-ok message_count:l
50.40 queue.delete h queue:s
50.41 queue.delete-ok message_count:l
50.50 queue.unbind h queue:s exchange:s routing_key:s
50.51 queue.unbind-ok
60.10 basic.qos prefetch_size:l prefetch_count:h global:b
60.11 basic.qos-ok
60.20 basic.consume h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b
60.21 basic.consume-ok consumer_tag:s
60.30 basic.cancel consumer_tag:s
60.31 basic.cancel-ok consumer_tag:s
60.40 basic.publish h exchange:s routing_key:s mandatory:b
60.50 basic.return reply_code:h reply_text:s exchange:s routing_key:s
60.60 basic.deliver consumer_tag:s delivery_tag:L redelivered:b exchange:s routing_key:s
60.70 basic.get h queue:s no_ack:b
60.71 basic.get-ok delivery_tag:L redelivered:b exchange:s routing_key:s message_count:l
60.72 basic.get-empty
60.80 basic.ack delivery_tag:L multiple:b
60.90 basic.reject delivery_tag:L requeue:b
60.100 basic.recover-async requeue:b
60.110 basic.recover requeue:b
60.111 basic.recover-ok
60.120 basic.nack delivery_tag:L multiple:b requeue:b
60.200 basic.credit consumer_tag:s
60.201 basic.credit-ok
60.202 basic.credit-drained consumer_tag:s
85.10 confirm.select
85.11 confirm.select-ok
90.10 tx.select
90.11 tx.select-ok
90.20 tx.commit
90.21 tx.commit-ok
90.30 tx.rollback
90.31 tx.rollback-ok
`
