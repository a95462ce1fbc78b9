//! `outbox doctor`.

use super::Call;
use crate::{
    args::Doctor,
    failure::{Exit, Failure},
    json,
    table::{cell, count},
};
use outbox_seaorm::doctor::{Diagnosis, DoctorOptions, examine};

pub(super) async fn run(call: &mut Call<'_>, said: &Doctor) -> Result<Exit, Failure> {
    let mut options = DoctorOptions::default();
    options.retention = said.retention.0;
    options.long_transaction = said.long_transaction.0;
    options.late = said.late.0;
    let diagnosis = examine(&call.target.store, &options).await?;
    call.tell(|| text(&diagnosis), || json::diagnosis(&diagnosis));
    Ok(if diagnosis.findings.is_empty() { Exit::Fine } else { Exit::Refused })
}

fn text(diagnosis: &Diagnosis) -> String {
    let mut lines = Vec::new();
    for finding in &diagnosis.findings {
        lines.push(format!("{:8} {}: {}", finding.severity, finding.code, cell(&finding.what)));
        lines.push(format!("         why:  {}", finding.why));
        lines.push(format!("         mend: {}\n", cell(&finding.mend)));
    }
    for unasked in &diagnosis.unasked {
        lines.push(format!("not checked: {}: {}", unasked.what, cell(&unasked.why)));
    }
    lines.push(format!("checked: {}", diagnosis.checked.join(", ")));
    lines.push(match diagnosis.findings.len() {
        0 => "nothing is wrong".to_owned(),
        n => count(n as u64, "finding"),
    });
    lines.join("\n")
}
