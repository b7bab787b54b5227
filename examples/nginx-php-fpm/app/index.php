<?php
// A slow page for `?seconds=3`: it is finished when the container stops meanwhile.
sleep((int) ($_GET['seconds'] ?? 0));
error_log('index.php was asked for');
echo 'Hello from PHP ', PHP_VERSION, ', you have sent ', strlen(file_get_contents('php://input')), " bytes\n";
