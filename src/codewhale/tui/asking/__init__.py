"""What is put to the person: approvals and questions, as cards above the composer."""
