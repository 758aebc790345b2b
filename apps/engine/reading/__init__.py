"""What readers share: unpacking, the strict JSON gate, messages, and the span tree."""
