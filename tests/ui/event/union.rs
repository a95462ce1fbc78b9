use outbox_core::OutboxEvent;
#[derive(OutboxEvent)]
#[outbox(name = "orders.order-placed", version = 1)]
union OrderPlaced {
    order_id: i32,
}

fn main() {}
