module onsale

go 1.26
